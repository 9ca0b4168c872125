#include "livepool/saved_plans.h"

#include <ATen/core/Tensor.h>
#include <fcntl.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "livepool/base/error.h"
#include "plan_json.h"

namespace livepool {
namespace {

namespace fs = std::filesystem;
using State = std::vector<std::pair<std::string, at::Tensor>>;

constexpr std::uintmax_t kMostBytes = 256U << 20U;  // a plan of a thousand ops takes about 200 KiB
constexpr std::int64_t kMostPlans = 1 << 14;        // they are looked for one by one

// "2.11.0", of the torch that runs.
std::string TorchVersion() {
  const std::uint64_t version = aoti_torch_abi_version();  // bytes: major, minor, patch, …
  std::string text;
  for (const int shift : {56, 48, 40}) text += (text.empty() ? "" : ".") + std::to_string((version >> shift) & 0xFF);
  return text;
}

// "fc.weight Float[8, 8] on cpu". Which GPU it is does not matter.
std::vector<std::string> ToTexts(const State& state) {
  std::vector<std::string> texts;
  for (const auto& [name, tensor] : state) {
    std::ostringstream text;
    text << name << ' ' << c10::toString(tensor.scalar_type()) << tensor.sizes() << " on "
         << c10::DeviceTypeName(tensor.device().type(), true);
    texts.push_back(text.str());
  }
  return texts;
}

void CheckHeader(const PlanFileHeader& header, const std::vector<std::string>& state) {
  if (header.version != kPlanFormat) {
    throw PlansRefused("it has format " + std::to_string(header.version) + ", and this livepool reads format " +
                       std::to_string(kPlanFormat) +
                       "; save the plans with this livepool, or take the one that has saved them");
  }
  if (header.torch != TorchVersion()) {
    throw PlansRefused("it was saved under torch " + header.torch + ", and torch " + TorchVersion() +
                       " runs, whose operators may allocate otherwise; save it anew");
  }
  const auto [saved, now] = std::mismatch(header.state.begin(), header.state.end(), state.begin(), state.end());
  if (saved == header.state.end() && now == state.end()) return;
  throw PlansRefused(
      "it was saved for another module: " + (saved == header.state.end() ? "nothing" : "'" + *saved + "'") +
      " stood where this one has " + (now == state.end() ? "nothing" : "'" + *now + "'") +
      "; load it into the module that it was saved for (same sizes, dtype and device), or save it anew");
}

std::string ReadText(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw InvalidInput("there is no such file");
  if (!fs::exists(status)) throw InvalidInput("it cannot be read: " + error.message());
  if (!fs::is_regular_file(status))
    throw InvalidInput(fs::is_directory(status) ? "it is a directory" : "it is no regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > kMostBytes) throw InvalidInput("it is too large for a file of plans");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || (size > 0 && !text)) throw InvalidInput(std::string("it cannot be read: ") + std::strerror(errno));
  return std::move(text).str();
}

// Calls, which may throw an error of ours, with `path` in front of its message.
template <typename Function>
auto About(const std::string& path, const Function& function) {
  const std::string where = "plans in '" + path + "': ";
  try {
    return function();
  } catch (const PlansRefused& error) {
    throw PlansRefused(where + error.what());
  } catch (const InvalidPlan& error) {
    throw InvalidPlan(where + error.what());
  } catch (const Error& error) {
    throw InvalidInput(where + error.what());
  }
}

// Writes to a file of another name and renames it, so that nobody sees half of it.
void WriteText(const std::string& path, const std::string& text) {
  static std::atomic<unsigned> writes{0};  // several threads may save at once
  const std::string part = path + "." + std::to_string(::getpid()) + "." + std::to_string(++writes) + ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const auto fail = [&] {
    const std::string why = std::strerror(errno);
    if (file >= 0) ::unlink(part.c_str());
    throw InvalidInput("it cannot be written: " + why);
  };
  if (file < 0) fail();
  bool written = true;
  for (std::size_t done = 0; written && done < text.size();) {
    const ::ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else
      written = errno == EINTR;
  }
  written = written && ::fsync(file) == 0;
  const int why = errno;
  ::close(file);
  errno = why;
  if (!written || std::rename(part.c_str(), path.c_str()) != 0) fail();
}

}  // namespace

SavedPlans SavedPlans::Read(const std::string& path, const State& state) {
  return About(path, [&] {
    std::istringstream lines(ReadText(path));
    std::string line;
    if (!std::getline(lines, line)) throw InvalidInput("it is empty");
    const PlanFileHeader header = ReadHeader(line);
    CheckHeader(header, ToTexts(state));
    if (header.plans > kMostPlans)
      throw InvalidInput("it says that it holds " + std::to_string(header.plans) + " plans");
    SavedPlans plans;
    for (std::int64_t i = 0; i < header.plans && std::getline(lines, line); ++i) {
      Entry entry = ReadEntry(line);
      plans.Put(std::move(entry.signature), std::move(entry.call), std::move(entry.plan));
    }
    if (header.plans != static_cast<std::int64_t>(plans.entries_.size()) || std::getline(lines, line))
      throw InvalidInput("it is cut off or damaged");
    return plans;
  });
}

void SavedPlans::Write(const std::string& path, const State& state) const {
  About(path, [&] {
    if (entries_.empty())
      throw InvalidInput("there is nothing to save: no call of the module has a graph yet; call it first");
    if (std::cmp_greater(entries_.size(), kMostPlans))
      throw InvalidInput("there are too many plans for one file: " + std::to_string(entries_.size()));
    std::string text =
        ToLine(PlanFileHeader{
            .torch = TorchVersion(), .state = ToTexts(state), .plans = static_cast<std::int64_t>(entries_.size())}) +
        "\n";
    for (const Entry& each : entries_) text += ToLine(each) + "\n";
    WriteText(path, text);
  });
}

void SavedPlans::Put(std::string signature, std::vector<std::int64_t> call, std::shared_ptr<const SavedPlan> plan) {
  const Entry* const known = FindEntry(signature, call);
  if (known != nullptr)
    entries_[static_cast<std::size_t>(known - entries_.data())].plan = std::move(plan);
  else
    entries_.push_back({std::move(signature), std::move(call), std::move(plan)});
}

std::shared_ptr<const SavedPlan> SavedPlans::Find(const std::string& signature, const CallSignature& call) const {
  const Entry* const found = FindEntry(signature, call.Portable());
  return found == nullptr ? nullptr : found->plan;
}

const SavedPlans::Entry* SavedPlans::FindEntry(const std::string& signature,
                                               const std::vector<std::int64_t>& call) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.signature == signature && each.call == call; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace livepool
