// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "shims/uverbs/test_uverbs.h"

namespace vabi {
namespace {

class OpenTest : public UverbsTest {
 protected:
  NodeView& Node() {
    for (uint32_t i = 0; i < image().node_count; ++i) {
      NodeView& node = image().node[i];
      if (std::strstr(node.path, "uverbs0") != nullptr) return node;
    }
    ADD_FAILURE() << "the world has no node uverbs0";
    return image().node[0];
  }
  int Open(int flags = O_RDWR) {
    const int result = FakeKernel::OpenNode(Node().path, flags, &opened_);
    if (result == 0) fds_.push_back(opened_.fd);
    return result;
  }
  Opened opened_;
};

TEST_F(OpenTest, GivesACharacterDevice) {
  ASSERT_EQ(0, Open());
  unsigned int mode = 0;
  uint64_t rdev = 0;
  ASSERT_TRUE(opened_.file->StatAs(&mode, &rdev));
  EXPECT_TRUE(S_ISCHR(mode));
  EXPECT_EQ(makedev(231, 192), rdev) << "IB_UVERBS_MAJOR, IB_UVERBS_BASE_MINOR";
  EXPECT_STREQ("/dev/infiniband/uverbs0", opened_.file->Name());
  EXPECT_EQ("open", Last()["via"]);
  // uverbs_fops has no poll: epoll refuses it (EPERM), poll finds it ready.
  const int set = epoll_create1(0);
  epoll_event event = {};
  EXPECT_EQ(-1, epoll_ctl(set, EPOLL_CTL_ADD, opened_.fd, &event));
  EXPECT_EQ(EPERM, errno);
  close(set);
}

TEST_F(OpenTest, OtherPathsAreNotOurs) {
  EXPECT_EQ(1, FakeKernel::OpenNode("/dev/null", O_RDWR, &opened_));
}

TEST_F(OpenTest, MissingNode) {
  Node().present = 0;
  EXPECT_EQ(-ENOENT, Open());
  EXPECT_EQ("open.no_node", LastRule());
}

TEST_F(OpenTest, PermissionsAreTheWorldsUsers) {
  Node().mode = 0600;
  Node().uid = 0;
  image().uid = image().gid = 1000;
  EXPECT_EQ(0, Open()) << "unless the world checks them";
  image().check_permissions = 1;
  EXPECT_EQ(-EACCES, Open());
  EXPECT_EQ("open.permission", LastRule());
  Node().mode = 0604;
  EXPECT_EQ(-EACCES, Open(O_RDWR));
  EXPECT_EQ(0, Open(O_RDONLY));
  Node().mode = 0660;
  Node().gid = image().gid = 44;
  EXPECT_EQ(0, Open());
}

TEST_F(OpenTest, NodeOfNoDevice) {
  Node().minor = 77;
  EXPECT_EQ(-ENXIO, Open());
  EXPECT_EQ("open.no_device", LastRule());
}

TEST_F(OpenTest, NodesOfOtherParts) {
  ASSERT_EQ(0, FakeKernel::OpenNode("/dev/infiniband/umad0", O_RDWR, &opened_));
  EXPECT_STREQ("/dev/infiniband/umad0", opened_.file->Name());
  close(opened_.fd);
  ASSERT_EQ(0, FakeKernel::OpenNode("/dev/infiniband/rdma_cm", O_RDWR, &opened_));
  EXPECT_STREQ("/dev/infiniband/rdma_cm", opened_.file->Name());
  close(opened_.fd);
  device().SetGone(true);
  EXPECT_EQ(-ENXIO, FakeKernel::OpenNode("/dev/infiniband/umad0", O_RDWR, &opened_));
  EXPECT_EQ("umad.open.gone", LastRule());
}

TEST_F(OpenTest, RegularFileInItsPlace) {
  Node().kind = 1;
  ASSERT_EQ(0, Open());
  unsigned int mode = 0;
  uint64_t rdev = 1;
  ASSERT_TRUE(opened_.file->StatAs(&mode, &rdev));
  EXPECT_TRUE(S_ISREG(mode));
  EXPECT_EQ(-ENOTTY, opened_.file->Ioctl(0xc0181b01, nullptr));
}

class MapTest : public UverbsTest {};

TEST_F(MapTest, MapsWhatTheDriverGives) {
  OpenContext();
  const long at = file().Mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
  ASSERT_FALSE(at < 0 && at > -4096);  // an address of 32 bits may be negative, too
  *reinterpret_cast<volatile int*>(at) = 1;
  munmap(reinterpret_cast<void*>(at), 4096);
  EXPECT_EQ("mmap:PAGE", Last()["name"]);
  EXPECT_EQ(-EINVAL, file().Mmap(nullptr, 4096, PROT_READ, MAP_SHARED, 8192));
}

TEST_F(MapTest, NeedsAContextAndTheOperation) {
  EXPECT_EQ(-EINVAL, file().Mmap(nullptr, 4096, PROT_READ, MAP_SHARED, 0));
  EXPECT_EQ("mmap.no_context", LastRule());
  script().lacks = {Op::mmap};
  EXPECT_EQ(-ENODEV, file().Mmap(nullptr, 4096, PROT_READ, MAP_SHARED, 0));
  EXPECT_EQ("mmap.absent", LastRule());
}

}  // namespace
}  // namespace vabi
