import StratusModel

/// A report as a self-contained page: throughput and latency over time, the faults injected
/// meanwhile, and the distribution of latencies.
package struct LoadPage {
    private let report: LoadReport
    private static let width = 900.0
    private static let height = 220.0
    private static let left = 64.0
    private static let bottom = 28.0

    package init(_ report: LoadReport) { self.report = report }

    package var html: String {
        let report = self.report
        let kind = report.rate.map { "\(Int($0)) requests a second" } ?? "as fast as answers come"
        var page = """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width">
            <title>\(Self.escaped(report.target)): \(Self.escaped(report.workload))</title>
            <style>
            :root { color-scheme: light dark; --line: #2364aa; --second: #d1495b; --quiet: #8888; }
            body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
            svg { width: 100%; height: auto; } text { fill: currentColor; font-size: 11px; }
            table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: right; }
            td:first-child, th:first-child { text-align: left; } figure { margin: 1.5rem 0; }
            .axis { stroke: var(--quiet); } .done { stroke: var(--line); fill: none; stroke-width: 1.5; }
            .slow { stroke: var(--second); fill: none; stroke-width: 1.5; }
            .mark { stroke: currentColor; stroke-dasharray: 3 3; }
            </style>
            </head>
            <body>
            <h1>\(Self.escaped(report.target)): \(Self.escaped(report.workload))</h1>
            <p>\(report.clientCount) clients, \(kind), \(Self.rounded(report.elapsed)) s.
            \(report.doneCount) operations, \(Self.rounded(report.perSecond)) a second;
            \(report.againCount) tries repeated, \(report.failedCount) operations failed;
            longest time without an answer: \(report.longestSilence) s.</p>

            """
        page += self.table
        page += "<figure><figcaption>Operations a second</figcaption>"
        page += self.overTime(
            [("done", report.seconds.map { Double($0.done) })], unit: "")
        page += "</figure>\n<figure><figcaption>Latency, milliseconds: "
        page += "half of all below the blue line, 99 of 100 below the red one</figcaption>"
        page += self.overTime(
            [
                (
                    "done",
                    report.seconds.map { Double($0.latencies.microseconds(at: 0.5)) / 1_000 }
                ),
                (
                    "slow",
                    report.seconds.map { Double($0.latencies.microseconds(at: 0.99)) / 1_000 }
                ),
            ], unit: " ms")
        page += "</figure>\n<figure><figcaption>Latency by part of all operations, milliseconds"
        page += "</figcaption>" + self.distribution + "</figure>\n</body>\n</html>\n"
        return page
    }

    private var table: String {
        var table = "<table><tr><th>Latency, ms</th><th>operations</th><th>mean</th>"
        for quantile in LoadReport.quantiles {
            table += "<th>\(LoadReport.name(of: quantile))</th>"
        }
        table += "<th>max</th></tr>\n"
        let rows =
            [("all", self.report.latencies)]
            + self.report.kinds.map { ($0.kind.rawValue, $0.latencies) }
        for (name, latencies) in rows {
            table += "<tr><td>\(Self.escaped(name))</td><td>\(latencies.count)</td>"
            table += "<td>\(Self.rounded(latencies.meanMicroseconds / 1_000))</td>"
            for quantile in LoadReport.quantiles {
                table +=
                    "<td>\(Self.rounded(Double(latencies.microseconds(at: quantile)) / 1_000))</td>"
            }
            table +=
                "<td>\(Self.rounded(Double(latencies.largestMicroseconds) / 1_000))</td></tr>\n"
        }
        return table + "</table>\n"
    }

    // MARK: Plots

    private func overTime(_ lines: [(style: String, values: [Double])], unit: String) -> String {
        // The incomplete second at the end would look like a drop.
        let whole = max(1, Int(self.report.elapsed))
        let count = max(2, min(self.report.seconds.count, whole))
        let top = Self.ceiling(lines.flatMap(\.values).max() ?? 0)
        func x(_ second: Double) -> Double {
            Self.left + second / Double(count) * (Self.width - Self.left - 10)
        }
        func y(_ value: Double) -> Double {
            Self.height - Self.bottom - value / top * (Self.height - Self.bottom - 14)
        }
        var svg = Self.begin
        for part in 0...4 {
            let value = top * Double(part) / 4
            svg += Self.rule(y: y(value), label: Self.rounded(value) + unit)
        }
        let step = max(1, count / 12)
        for second in stride(from: 0, to: count, by: step) {
            svg +=
                "<text x=\"\(Self.rounded(x(Double(second))))\" y=\"\(Self.height - 10)\" "
                + "text-anchor=\"middle\">\(second) s</text>"
        }
        for mark in self.report.marks {
            let at = Self.rounded(x(min(max(0, mark.seconds), Double(count))))
            svg +=
                "<g><title>\(Self.escaped(mark.text))</title><line class=\"mark\" x1=\"\(at)\" "
                + "x2=\"\(at)\" y1=\"10\" y2=\"\(Self.height - Self.bottom)\"/>"
            svg += "<text x=\"\(at)\" y=\"9\">\(Self.escaped(mark.text))</text></g>"
        }
        for (style, values) in lines {
            let points = values.prefix(whole).enumerated().map { second, value in
                "\(Self.rounded(x(Double(second) + 0.5))),\(Self.rounded(y(value)))"
            }
            svg += "<polyline class=\"\(style)\" points=\"\(points.joined(separator: " "))\"/>"
        }
        return svg + "</svg>"
    }

    /// The slower the rarer: each step to the right is ten times rarer.
    private var distribution: String {
        let latencies = self.report.latencies
        let steps = 100
        let decades = 4.0
        let values = (0...steps).map { step in
            Double(
                latencies.microseconds(
                    at: 1 - Double.power(10, -decades * Double(step) / Double(steps)))) / 1_000
        }
        let top = Self.ceiling(values.last ?? 0)
        func x(_ part: Double) -> Double {
            Self.left + part * (Self.width - Self.left - 40)
        }
        func y(_ value: Double) -> Double {
            Self.height - Self.bottom - value / top * (Self.height - Self.bottom - 14)
        }
        var svg = Self.begin
        for part in 0...4 {
            svg += Self.rule(
                y: y(top * Double(part) / 4), label: Self.rounded(top * Double(part) / 4) + " ms")
        }
        for (decade, label) in ["0", "90 %", "99 %", "99.9 %", "99.99 %"].enumerated() {
            svg +=
                "<text x=\"\(Self.rounded(x(Double(decade) / decades)))\" "
                + "y=\"\(Self.height - 10)\" text-anchor=\"middle\">\(label)</text>"
        }
        let points = values.enumerated().map { step, value in
            "\(Self.rounded(x(Double(step) / Double(steps)))),\(Self.rounded(y(value)))"
        }
        return svg + "<polyline class=\"done\" points=\"\(points.joined(separator: " "))\"/></svg>"
    }

    private static let begin =
        "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\">"

    private static func rule(y: Double, label: String) -> String {
        let at = Self.rounded(y)
        return "<line class=\"axis\" x1=\"\(Self.left)\" x2=\"\(Self.width - 10)\" y1=\"\(at)\" "
            + "y2=\"\(at)\"/><text x=\"\(Self.left - 6)\" y=\"\(Self.rounded(y + 4))\" "
            + "text-anchor=\"end\">\(label)</text>"
    }

    /// The next 1, 2 or 5 with zeros: what an axis ends at.
    static func ceiling(_ value: Double) -> Double {
        var unit = 1.0
        while unit > value, unit > 1e-3 { unit /= 10 }
        while unit * 10 <= value { unit *= 10 }
        return [1.0, 2, 5, 10].map { $0 * unit }.first { $0 >= value } ?? unit * 10
    }

    /// Three digits that count.
    static func rounded(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        let scale = abs(value) >= 100 ? 1.0 : abs(value) >= 10 ? 10 : 100
        let scaled = (value * scale).rounded() / scale
        return scaled == scaled.rounded() ? "\(Int64(scaled))" : "\(scaled)"
    }

    static func escaped(_ text: String) -> String {
        var out = ""
        for character in text {
            switch character {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            default: out.append(character)
            }
        }
        return out
    }
}
