import StratusCommandLine

/// Several rounds of several targets: the first is what the others are held against.
package struct Comparison {
    private let rounds: [[LoadReport]]

    package init(_ rounds: [[LoadReport]]) { self.rounds = rounds }

    /// A table of targets: the median of each one's rounds, and the median, least and most of the
    /// first one's rounds over its own.
    package var table: String {
        guard let first = self.rounds.first else { return "" }
        var table = TextTable([
            .init("TARGET"), .init("WORKLOAD"), .init("A SECOND", alignsRight: true),
            .init("P50 MS", alignsRight: true), .init("P99 MS", alignsRight: true),
            .init("FAILED", alignsRight: true), .init("STRATUS BESIDE IT"),
        ])
        for (column, report) in first.enumerated() {
            let own = self.rounds.map { $0[column] }
            let ratios = self.rounds.map { $0[0].perSecond / max($0[column].perSecond, 1e-9) }
            let beside =
                column == 0
                ? ""
                : "\(LoadPage.rounded(Self.median(ratios))) x "
                    + "(\(LoadPage.rounded(ratios.min() ?? 0)) to "
                    + "\(LoadPage.rounded(ratios.max() ?? 0)))"
            func milliseconds(_ quantile: Double) -> String {
                LoadPage.rounded(
                    Self.median(
                        own.map { Double($0.latencies.microseconds(at: quantile)) / 1_000 }))
            }
            table.append([
                report.target, report.workload, LoadPage.rounded(Self.median(own.map(\.perSecond))),
                milliseconds(0.5), milliseconds(0.99),
                "\(own.reduce(0) { $0 + $1.failedCount })", beside,
            ])
        }
        return table.write()
    }

    package static func table(of report: LoadReport) -> String {
        var table = TextTable(
            [
                .init("OPERATION"), .init("COUNT", alignsRight: true),
                .init("MEAN MS", alignsRight: true),
            ]
                + LoadReport.quantiles.map {
                    .init(LoadReport.name(of: $0).uppercased(), alignsRight: true)
                } + [.init("MAX", alignsRight: true)])
        for (name, latencies) in report.kinds.map({ ($0.kind.rawValue, $0.latencies) })
            + [("all", report.latencies)]
        {
            table.append(
                [
                    name, "\(latencies.count)",
                    LoadPage.rounded(latencies.meanMicroseconds / 1_000),
                ]
                    + LoadReport.quantiles.map {
                        LoadPage.rounded(Double(latencies.microseconds(at: $0)) / 1_000)
                    } + [LoadPage.rounded(Double(latencies.largestMicroseconds) / 1_000)])
        }
        var text = table.write()
        text +=
            "\(LoadPage.rounded(report.perSecond)) a second over \(LoadPage.rounded(report.elapsed)) s, "
        text += "\(report.againCount) tries repeated, \(report.failedCount) operations failed\n"
        for (reason, count) in report.failures { text += "  \(count) × \(reason)\n" }
        return text
    }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        if sorted.isEmpty { return 0 }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1
            ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
