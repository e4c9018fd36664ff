// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_COMMANDS_H_
#define VABI_SHIMS_UVERBS_COMMANDS_H_

// Handlers of the write commands, in cmd_*.cc.

namespace vabi {

struct Command;

int GetContext(Command&);
int QueryDevice(Command&);
int QueryDeviceEx(Command&);
int QueryPort(Command&);
int AllocPd(Command&);
int DeallocPd(Command&);
int RegMr(Command&);
int ReregMr(Command&);
int DeregMr(Command&);
int AllocMw(Command&);
int DeallocMw(Command&);
int CreateCompChannel(Command&);
int CreateCq(Command&);
int CreateCqEx(Command&);
int ResizeCq(Command&);
int ModifyCqEx(Command&);
int PollCq(Command&);
int ReqNotifyCq(Command&);
int DestroyCq(Command&);
int CreateQp(Command&);
int CreateQpEx(Command&);
int OpenQp(Command&);
int QueryQp(Command&);
int ModifyQp(Command&);
int ModifyQpEx(Command&);
int DestroyQp(Command&);
int PostSend(Command&);
int PostRecv(Command&);
int PostSrqRecv(Command&);
int CreateAh(Command&);
int DestroyAh(Command&);
int AttachMcast(Command&);
int DetachMcast(Command&);
int CreateSrq(Command&);
int CreateXsrq(Command&);
int ModifySrq(Command&);
int QuerySrq(Command&);
int DestroySrq(Command&);
int OpenXrcd(Command&);
int CloseXrcd(Command&);
int CreateWqEx(Command&);
int ModifyWqEx(Command&);
int DestroyWqEx(Command&);
int CreateRwqIndTableEx(Command&);
int DestroyRwqIndTableEx(Command&);
int CreateFlowEx(Command&);
int DestroyFlowEx(Command&);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_COMMANDS_H_
