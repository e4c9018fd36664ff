// SPDX-License-Identifier: BSD-2-Clause
// siw_main.c, siw_verbs.c, siw_mem.c: device, context, memory
#include "shims/providers/siw/driver.h"

#include "shims/uverbs/uverbs_file.h"

namespace vabi {

std::unique_ptr<Driver> MakeSiwDriver() {
  return std::make_unique<provider::Limited<siw::SiwDriver>>();
}

namespace siw {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint32_t kStagKeyBits = 8;
constexpr int64_t kLargestAllocation = 4 << 20;  // KMALLOC_MAX_SIZE of x86-64
// siw.h
constexpr uint32_t kMaxQp = 1024 * 100, kMaxQpWr = 1024 * 32, kMaxReads = 128;

}  // namespace

// siw_device_ops; which of the commands that it serves itself user space may send stands in
// uverbs_cmd_mask (matrix/kernels).
bool SiwDriver::Offers(Op op) const {
  switch (op) {
    case Op::alloc_ucontext:
    case Op::dealloc_ucontext:
    case Op::mmap:
    case Op::alloc_pd:
    case Op::dealloc_pd:
    case Op::reg_user_mr:
    case Op::dereg_mr:
    case Op::create_cq:
    case Op::destroy_cq:
    case Op::poll_cq:
    case Op::req_notify_cq:
    case Op::create_qp:
    case Op::query_qp:
    case Op::modify_qp:
    case Op::destroy_qp:
    case Op::post_send:
    case Op::post_recv:
    case Op::create_srq:
    case Op::modify_srq:
    case Op::query_srq:
    case Op::destroy_srq:
    case Op::post_srq_recv:
    case Op::query_device:
    case Op::query_port:
    case Op::query_gid:
    case Op::query_pkey:
    case Op::query_device_ex:
    case Op::create_cq_ex:
    case Op::create_qp_ex:
    case Op::modify_qp_ex:
      return true;
    default:
      return false;
  }
}

void SiwDriver::Describe(const Device& device, DeviceAttributes* out) const {
  const World& world = device.world();
  const auto sges = static_cast<uint32_t>(world.Flag(constant::SIW_MAX_SGE));
  out->max_mr_size = ~uint64_t{0};
  out->page_size_cap = kPage;
  out->device_cap_flags = static_cast<uint64_t>(world.Knob(knob::device_cap_flags));
  out->vendor_id = 0x626d74;  // SIW_VENDOR_ID
  out->vendor_part_id = device.number() + 1;
  out->max_qp = kMaxQp;
  out->max_qp_wr = kMaxQpWr;
  out->max_send_sge = out->max_recv_sge = sges;
  out->max_sge_rd = 1;
  out->max_cq = 1024 * 100;
  out->max_cqe = kMaxQpWr * 100;
  out->max_mr = kMaxQp * 10;
  out->max_pd = kMaxQp;
  out->max_qp_rd_atom = out->max_qp_init_rd_atom = kMaxReads;
  out->max_res_rd_atom = kMaxQp * kMaxReads;
  out->max_srq = kMaxQp;
  out->max_srq_wr = kMaxQpWr * 10;
  out->max_srq_sge = sges;
}

uint32_t SiwDriver::CompVectors(const Device& device) const {
  return static_cast<uint32_t>(device.world().Knob(knob::comp_vectors));
}

int SiwDriver::QueryDevice(Call& call, Device&) {
  if (call.Violates(rule::query_device_udata, call.in.length() != 0 || call.out.length() != 0))
    return call.Refuse(rule::query_device_udata);
  return provider::NoUdataIo(call, rule::query_device_input, rule::query_device_fault);
}

int Reply(Call& call, const Body& reply) {
  const auto how =
      call.world.Knob(knob::respond_zeroes) != 0 ? provider::How::kZeroes : provider::How::kWhole;
  return provider::Respond(call, reply.base(), reply.length(), how, rule::reply_fault);
}

int SiwDriver::AllocContext(Call& call, Context& context) {
  OwnedBody<16> reply(call.world, structure::siw_uresp_alloc_ctx);
  reply.Set(VABI_PF(siw_uresp_alloc_ctx, dev_id), context.device->number() + 1);
  int error = 0;
  if (call.Violates(rule::context_full, ++contexts_ > max_contexts_))
    error = call.Refuse(rule::context_full);
  else if (call.out.length() < reply.length())
    error = call.Refuse(rule::context_reply_short);
  else
    error = Reply(call, reply);
  if (error != 0) {
    --contexts_;
    return error;
  }
  context.driver = std::make_unique<ContextState>();
  return 0;
}

void SiwDriver::DeallocContext(Context&) { --contexts_; }

uint64_t AddPlace(Call& call, uint64_t length, const char* kind) {
  ContextState& context = StateOf(*call.file.context());
  // siw_create_uobj: each key names a page, and the next may name the page behind it.
  if (call.world.Knob(knob::keys_cyclic) != 0) {
    const uint32_t key = context.next_key++;
    return context.entries.Insert({.length = kPage, .kind = kind, .address = length}, key, key);
  }
  return context.entries.Insert({.length = length, .kind = kind, .address = length});
}

// siw_mmap. An entry's `address` is its queue's length.
int SiwDriver::Map(Call& call, Context& context, const MapRequest& request, MapReply* reply) {
  if (call.world.Knob(knob::map_entries) != 0) {
    if (const int error = request.CheckShared(call)) return error;
  }
  const provider::MapEntry* entry = StateOf(context).entries.Find(request.offset);
  const auto pages = [](uint64_t bytes) { return (bytes + kPage - 1) / kPage; };
  if (entry == nullptr || pages(entry->address) != pages(request.length))
    return call.Refuse(rule::map_entry);
  reply->kind = entry->kind;
  reply->anonymous = true;
  reply->pages = DeviceVma::Pages::kVmalloc;
  return 0;
}

int SiwDriver::AllocPd(Call&, Pd&) { return 0; }

// siw_reg_user_mr, siw_umem_get, siw_mr_add_mem
int SiwDriver::RegMr(Call& call, Mr& mr) {
  const World& world = call.world;
  if (call.Violates(rule::mr_empty, mr.length == 0)) return call.Refuse(rule::mr_empty);
  const uint64_t bytes = mr.start % kPage + mr.length;  // may wrap, as siw_umem_get's may
  const uint64_t pages = (bytes + kPage - 1) / kPage;
  if (!world.Rule(rule::mr_pages).on && pages > INT32_MAX)
    return call.Unmodelled("siw of this kernel counts a region's pages in an int: these are more");
  // What mlock() locked comes off in the kernel; no program here has locked any.
  const auto limit = world.Knob(knob::limits_everybody) != 0 ? MemlockLimit() : std::nullopt;
  if (call.Violates(rule::mr_memlock, limit && PagesPinned() + pages > *limit / kPage))
    return call.Refuse(rule::mr_memlock);
  // Chunks of 512 pages, with a pointer each.
  const int64_t chunks = world.Knob(knob::signed_pages) != 0
                             ? (static_cast<int32_t>(pages) >> 9) + 1
                             : ((static_cast<uint32_t>(pages) - 1) >> 9) + 1;
  if (chunks < 0 || chunks * 8 > kLargestAllocation) return call.Refuse(rule::mr_chunks);
  if (const int error =
          provider::PinMemory(call, mr.start, mr.length, provider::AccessWrites(mr.access),
                              {rule::mr_range, rule::mr_pages, rule::mr_fault, RuleId::umem_no_lock,
                               rule::mr_memlock})) {
    return error;
  }
  OwnedBody<16> request(world, structure::siw_ureq_reg_mr);
  if (const int error = provider::CopyRequest(
          call, request.base(), request.length(),
          {request.length(), rule::mr_input_short, rule::mr_input_tail, rule::mr_input_fault})) {
    return error;
  }
  const uint32_t stag =
      mr.device->NextNumber() << kStagKeyBits | request.U32(VABI_PF(siw_ureq_reg_mr, stag_key));
  OwnedBody<16> reply(world, structure::siw_uresp_reg_mr);
  reply.Set(VABI_PF(siw_uresp_reg_mr, stag), stag);
  if (call.out.length() < reply.length()) return call.Refuse(rule::mr_reply_short);
  if (const int error = Reply(call, reply)) return error;
  mr.lkey = mr.rkey = stag;
  return 0;
}

int SiwDriver::DeregMr(Call&, Mr&) { return 0; }

}  // namespace siw
}  // namespace vabi
