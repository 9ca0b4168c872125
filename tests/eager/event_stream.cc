#include "eager/event_stream.h"

#include <istream>
#include <sstream>

#include "livepool/base/error.h"

namespace livepool::testing {

EventStream ReadEvents(std::istream& in, const std::string& name) {
  EventStream events;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    std::string verb;
    StreamEvent event;
    words >> verb;
    if (verb == "begin") {
      words >> event.id;
    } else if (verb == "end") {
      event = End();
    } else if (verb == "throw") {
      event = Throw();
    } else if (verb == "alloc") {
      event.kind = StreamEvent::Kind::kAlloc;
      words >> event.id >> event.site >> event.size;
    } else if (verb == "free") {
      words >> event.id;
      event = Free(event.id);
      if (words && !words.eof()) words >> event.site;
    } else {
      words.setstate(std::ios::failbit);
    }
    if (!words || (event.kind == StreamEvent::Kind::kAlloc && event.size <= 0)) {
      throw InvalidInput(name + ":" + std::to_string(number) + ": '" + line + "' is no event");
    }
    events.push_back(event);
  }
  return events;
}

}  // namespace livepool::testing
