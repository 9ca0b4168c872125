#include "svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <ostream>

namespace livepool::plan_tool {
namespace {

constexpr double kWidth = 1200, kHeight = 700;
constexpr double kLeft = 90, kRight = 30, kTop = 60, kBottom = 50;
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr std::size_t kManyBuffers = 20'000;
constexpr double kVisible = 0.3;  // pixels, where there are many

std::string Number(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", x);
  return text;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return escaped;
}

// 1, 2 or 5 times a power of ten (or of two, for bytes), so that about `count` of them make up `range`.
double Step(double range, int count, bool binary) {
  const double rough = std::max(range / count, 1.0);
  if (binary) return std::exp2(std::ceil(std::log2(rough)));
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  Picture(std::ostream& out, const Problem& problem, const Plan& plan) : out_(out), problem_(problem), plan_(plan) {
    if (problem.buffers.empty()) return;
    first_ = static_cast<double>(problem.buffers.front().lifetime.birth);
    last_ = first_;
    for (const Buffer& buffer : problem.buffers) {
      first_ = std::min(first_, static_cast<double>(buffer.lifetime.birth));
      last_ = std::max(last_, static_cast<double>(buffer.lifetime.death));
      smallest_ = std::min(smallest_, buffer.size);
      largest_ = std::max(largest_, buffer.size);
    }
  }

  void Frame(const std::string& title) {
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kWidth << "\" height=\"" << kHeight
         << "\" viewBox=\"0 0 " << kWidth << ' ' << kHeight << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
         << "<text x=\"" << kLeft << "\" y=\"26\" font-size=\"17\" font-weight=\"bold\" fill=\"#222\">"
         << Escaped(title) << "</text>\n<text x=\"" << kLeft << "\" y=\"46\" fill=\"#555\">" << problem_.buffers.size()
         << " buffers, arena " << FormatBytes(plan_.height) << ", lower bound " << FormatBytes(plan_.lower_bound)
         << (plan_.ProvedOptimal() ? ", proved optimal" : "") << ", " << Escaped(plan_.algorithm) << "</text>\n"
         << "<rect x=\"" << kLeft << "\" y=\"" << kTop << "\" width=\"" << kPlotWidth << "\" height=\"" << kPlotHeight
         << "\" fill=\"#f3f4f6\"/>\n";
  }

  void Axes() {
    const auto height = static_cast<double>(plan_.height);
    for (double bytes = 0, step = Step(height, 6, true); bytes <= height; bytes += step) {
      out_ << "<line x1=\"" << kLeft << "\" x2=\"" << kWidth - kRight << "\" y1=\"" << Number(Y(bytes)) << "\" y2=\""
           << Number(Y(bytes)) << "\" stroke=\"#000\" stroke-opacity=\"0.12\"/>\n<text x=\"" << kLeft - 8 << "\" y=\""
           << Number(Y(bytes) + 4) << "\" text-anchor=\"end\" fill=\"#444\">" << FormatBytes(static_cast<Bytes>(bytes))
           << "</text>\n";
    }
    const double step = Step(last_ - first_, 10, false);
    for (double time = std::ceil(first_ / step) * step; time <= last_; time += step) {
      out_ << "<text x=\"" << Number(X(time)) << "\" y=\"" << kHeight - kBottom + 18
           << "\" text-anchor=\"middle\" fill=\"#444\">" << Number(time).substr(0, Number(time).find('.'))
           << "</text>\n";
    }
    out_ << "<text x=\"" << kLeft + kPlotWidth / 2 << "\" y=\"" << kHeight - 10
         << "\" text-anchor=\"middle\" fill=\"#444\">time</text>\n";
  }

  void Buffers(const std::vector<std::string>& ids) {
    const bool many = problem_.buffers.size() > kManyBuffers;
    for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      const auto offset = static_cast<double>(plan_.offsets[i]);
      const double x = X(static_cast<double>(buffer.lifetime.birth));
      const double y = Y(offset + static_cast<double>(buffer.size));
      const double width = X(static_cast<double>(buffer.lifetime.death)) - x;
      const double height = Y(offset) - y;
      if (many && width < kVisible && height < kVisible) continue;
      const bool outlined = width > 2 && height > 2;
      out_ << "<rect x=\"" << Number(x) << "\" y=\"" << Number(y) << "\" width=\"" << Number(std::max(width, 0.2))
           << "\" height=\"" << Number(std::max(height, 0.2)) << "\" fill=\"" << Colour(buffer.size) << '"'
           << (outlined ? " stroke=\"#fff\" stroke-width=\"0.6\"" : "") << '>';
      if (!many) {
        out_ << "<title>" << Escaped(ids[i]) << ": " << FormatBytes(buffer.size) << " at " << plan_.offsets[i] << ", ["
             << buffer.lifetime.birth << ", " << buffer.lifetime.death << ")</title>";
      }
      out_ << "</rect>\n";
      if (!many && height > 13 && width > 7.0 * static_cast<double>(ids[i].size()) + 8) {
        out_ << "<text x=\"" << Number(x + width / 2) << "\" y=\"" << Number(y + height / 2 + 4)
             << "\" text-anchor=\"middle\" fill=\"#fff\" font-size=\"11\" pointer-events=\"none\">" << Escaped(ids[i])
             << "</text>\n";
      }
    }
  }

  void LiveBytes() {
    std::map<Time, Bytes> changes;
    for (const Buffer& buffer : problem_.buffers) {
      changes[buffer.lifetime.birth] += buffer.size;
      changes[buffer.lifetime.death] -= buffer.size;
    }
    out_ << "<path fill=\"none\" stroke=\"#111\" stroke-width=\"1.4\" d=\"M" << Number(X(first_)) << ' '
         << Number(Y(0));
    // Of the changes within half a pixel only the highest is drawn.
    Bytes live = 0;
    Bytes highest = 0;
    double column = -1;
    const auto draw = [&] {
      if (column >= 0) out_ << 'H' << Number(column / 2) << 'V' << Number(Y(static_cast<double>(highest)));
    };
    for (const auto& [time, change] : changes) {
      const double here = std::floor(2 * X(static_cast<double>(time)));
      if (here != column) {
        draw();
        highest = live + change;
        column = here;
      }
      live += change;
      highest = std::max(highest, live);
    }
    draw();
    const double bound = Y(static_cast<double>(plan_.lower_bound));
    out_ << "\"/>\n<line x1=\"" << kLeft << "\" x2=\"" << kWidth - kRight << "\" y1=\"" << Number(bound) << "\" y2=\""
         << Number(bound) << "\" stroke=\"#b91c1c\" stroke-dasharray=\"6 4\" stroke-width=\"1.4\"/>\n"
         << "<text x=\"" << kWidth - kRight << "\" y=\"46\" text-anchor=\"end\" fill=\"#555\"><tspan fill=\"#b91c1c\">"
         << "- - lower bound</tspan>   <tspan fill=\"#111\">— live bytes</tspan></text>\n</svg>\n";
  }

 private:
  double X(double time) const { return kLeft + kPlotWidth * (time - first_) / std::max(last_ - first_, 1.0); }
  double Y(double bytes) const {
    return kTop + kPlotHeight * (1 - bytes / std::max(static_cast<double>(plan_.height), 1.0));
  }

  // From teal (small) over blue to violet (large), by the logarithm of the size.
  std::string Colour(Bytes size) const {
    const double range = std::log2(static_cast<double>(largest_)) - std::log2(static_cast<double>(smallest_));
    const double place =
        (std::log2(static_cast<double>(size)) - std::log2(static_cast<double>(smallest_))) / std::max(range, 1.0);
    char text[48];
    std::snprintf(text, sizeof(text), "hsl(%.0f,%.0f%%,%.0f%%)", 172 + 110 * place, 45 + 15 * place, 62 - 12 * place);
    return text;
  }

  std::ostream& out_;
  const Problem& problem_;
  const Plan& plan_;
  double first_ = 0, last_ = 1;
  Bytes smallest_ = INT64_MAX, largest_ = 1;
};

}  // namespace

void WriteSvg(std::ostream& out, const std::string& title, const Problem& problem, const Plan& plan,
              const std::vector<std::string>& ids) {
  Picture picture(out, problem, plan);
  picture.Frame(title);
  picture.Axes();
  picture.Buffers(ids);
  picture.LiveBytes();
}

}  // namespace livepool::plan_tool
