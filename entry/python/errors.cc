#include "errors.h"

#include <torch/csrc/Exceptions.h>

#include "livepool/base/error.h"

namespace livepool {

// Most derived first.
void RegisterErrors(py::module& m) {
  static py::exception<Error> base(m, "Error", PyExc_RuntimeError);
  static py::exception<InvalidInput> invalid_input(m, "InvalidInput", base);
  static py::exception<InvalidPlan> invalid_plan(m, "InvalidPlan", base);
  static py::exception<PlansRefused> plans_refused(m, "PlansRefused", base);
  static py::exception<ArenaInUse> arena_in_use(m, "ArenaInUse", base);
  static py::exception<CaptureRefused> capture_refused(m, "CaptureRefused", base);
  static py::exception<CaptureDisturbed> capture_disturbed(m, "CaptureDisturbed", capture_refused);
  static py::exception<ReplayMismatch> replay_mismatch(m, "ReplayMismatch", base);
  static py::exception<GuardFailed> guard_failed(m, "GuardFailed", base);
  static py::exception<CheckFailed> check_failed(m, "CheckFailed", base);
  static py::exception<NotInstalled> not_installed(m, "NotInstalled", base);
  static py::exception<UnsupportedTorch> unsupported_torch(m, "UnsupportedTorch", base);
  py::register_exception_translator([](std::exception_ptr pointer) {
    const auto set = [](const py::handle& type, const std::exception& error) {
      PyErr_SetString(type.ptr(), error.what());
    };
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InvalidInput& error) {
      set(invalid_input, error);
    } catch (const InvalidPlan& error) {
      set(invalid_plan, error);
    } catch (const PlansRefused& error) {
      set(plans_refused, error);
    } catch (const ArenaInUse& error) {
      set(arena_in_use, error);
    } catch (const CaptureDisturbed& error) {
      set(capture_disturbed, error);
    } catch (const CaptureRefused& error) {
      set(capture_refused, error);
    } catch (const ReplayMismatch& error) {
      set(replay_mismatch, error);
    } catch (const GuardFailed& error) {
      set(guard_failed, error);
    } catch (const CheckFailed& error) {
      set(check_failed, error);
    } catch (const NotInstalled& error) {
      set(not_installed, error);
    } catch (const UnsupportedTorch& error) {
      set(unsupported_torch, error);
    } catch (const Error& error) {
      set(base, error);
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(pointer);  // torch's own type, torch.OutOfMemoryError for one
    }
  });
}

}  // namespace livepool
