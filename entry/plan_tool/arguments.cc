#include "arguments.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <string>

namespace livepool::plan_tool {

namespace {

// CLI::Range lets "nan" pass, as it is neither below nor above.
std::string NotANumber(const std::string& text) { return std::isnan(std::stod(text)) ? text + " is no time" : ""; }

}  // namespace

Parsed ParseArguments(int argc, const char* const* argv) {
  Parsed parsed;
  Arguments& a = parsed.arguments;
  CLI::App app{
      "Packs buffers into one arena, as low as can be found.\n"
      "TRACE.csv has the columns id,lower,upper,size[,alignment][,offset] in any order; lifetimes are [lower, upper),\n"
      "and an offset says where a buffer must stay.\n"
      "Exit code: 0 done; 1 no plan within --capacity, or --validate found the plan invalid; 2 bad input.",
      "livepool-plan"};
  app.add_option("TRACE.csv", a.trace, "The buffers to pack")->required();
  app.add_option("--output", a.output, "Write the rows with their offsets to this file");
  app.add_flag("--json", a.json, "Print the result as JSON");
  app.add_option("--alignment", a.alignment, "Round sizes and offsets up to multiples of this")
      ->check(CLI::Range(Bytes{1}, Bytes{1} << 40))
      ->capture_default_str();
  app.add_option("--capacity", a.capacity, "Stop at a plan of this many bytes; without one the exit code is 1")
      ->check(CLI::Range(Bytes{0}, Bytes{INT64_MAX}));
  app.add_option("--time-limit", a.time_limit, "Seconds after which the best plan so far is taken")
      ->check(CLI::Range(0.0, 1e9) & CLI::Validator([](std::string& text) { return NotANumber(text); }, ""))
      ->capture_default_str();
  app.add_option("--nodes", a.nodes,
                 "Node budget of the search; unlike --time-limit the result depends on nothing else")
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX));
  app.add_option("--threads", a.threads, "Rules that are tried side by side; the result is the same")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--seed", a.seed, "Seed of the search")->capture_default_str();
  const std::map<std::string, BaselineRule> rules = {{"whole-slots", BaselineRule::kWholeSlots},
                                                     {"best-fit-by-birth", BaselineRule::kBestFitByBirth},
                                                     {"best-fit-by-size", BaselineRule::kBestFitBySize}};
  CLI::Option* const rule =
      app.add_option("--rule", a.rule, "Use this baseline alone: whole-slots, best-fit-by-birth or best-fit-by-size")
          ->transform(CLI::CheckedTransformer(rules).description(""));
  app.add_option("--validate", a.validate, "Judge the offsets of this file in place of making a plan")->excludes(rule);
  app.add_option("--svg", a.svg, "Draw the plan, time against offset, into this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    parsed.exit_code = 0;
  } catch (const CLI::ParseError& error) {
    std::cerr << "livepool-plan: " << error.what() << "; --help lists the options\n";
    parsed.exit_code = 2;
  }
  return parsed;
}

}  // namespace livepool::plan_tool
