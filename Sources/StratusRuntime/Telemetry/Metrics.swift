import Glibc
package import StratusModel
import Synchronization

/// Every metric of a process, by name, and their text for Prometheus.
///
/// Making a metric takes a lock and allocates, so code that measures keeps the metric it made.
/// Adding to a counter or a histogram is one or three relaxed atomic additions on a stripe chosen
/// by thread, so that two event loops do not contend for a cache line. Asking twice for a name with
/// equal labels gives the same metric.
///
/// The number of series of one name is bounded: beyond ``seriesCountMax`` every new combination of
/// label values is counted under `other` (O-20), so that no text from outside can make memory grow.
package final class Metrics: Sendable {
    package static let seriesCountMax = 512

    package enum Kind: String, Sendable { case counter, gauge, histogram }

    private enum Value: Sendable {
        case counter(Counter)
        case gauge(Gauge)
        case computed(@Sendable () -> Double)
        case histogram(LatencyHistogram)
    }

    private struct Family: Sendable {
        var name: String
        var help: String
        var kind: Kind
        var labels: [String]
        /// In the order made; found by their label values.
        var series: [(values: [String], value: Value)] = []
    }

    private let families = Mutex<[Family]>([])

    package init() {}

    package func counter(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:]
    )
        -> Counter
    {
        let value = self.series(name, help, .counter, labels) { .counter(Counter()) }
        guard case .counter(let counter) = value else {
            preconditionFailure("\(name) is no counter")
        }
        return counter
    }

    package func gauge(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:]
    )
        -> Gauge
    {
        let value = self.series(name, help, .gauge, labels) { .gauge(Gauge()) }
        guard case .gauge(let gauge) = value else { preconditionFailure("\(name) is no gauge") }
        return gauge
    }

    /// A gauge that is read on demand. `read` runs on the reader's thread and must not wait.
    package func gauge(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:],
        read: @escaping @Sendable () -> Double
    ) {
        _ = self.series(name, help, .gauge, labels) { .computed(read) }
    }

    /// A counter that somebody else keeps, asked when somebody looks.
    package func counter(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:],
        read: @escaping @Sendable () -> Double
    ) {
        _ = self.series(name, help, .counter, labels) { .computed(read) }
    }

    package func histogram(
        _ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:]
    ) -> LatencyHistogram {
        let value = self.series(name, help, .histogram, labels) { .histogram(LatencyHistogram()) }
        guard case .histogram(let histogram) = value else {
            preconditionFailure("\(name) is no histogram")
        }
        return histogram
    }

    private func series(
        _ name: String, _ help: String, _ kind: Kind, _ labels: KeyValuePairs<String, String>,
        _ make: () -> Value
    ) -> Value {
        let names = labels.map(\.key)
        var values = labels.map(\.value)
        return self.families.withLock { families in
            let place: Int
            if let known = families.firstIndex(where: { $0.name == name }) {
                precondition(
                    families[known].kind == kind && families[known].labels == names,
                    "\(name) is declared twice, differently")
                place = known
            } else {
                precondition(Self.isName(name) && names.allSatisfy(Self.isName), "bad name \(name)")
                families.append(Family(name: name, help: help, kind: kind, labels: names))
                place = families.count - 1
            }
            if let known = families[place].series.first(where: { $0.values == values }) {
                return known.value
            }
            if families[place].series.count >= Self.seriesCountMax {
                values = names.map { _ in "other" }
                if let known = families[place].series.first(where: { $0.values == values }) {
                    return known.value
                }
            }
            let value = make()
            families[place].series.append((values, value))
            return value
        }
    }

    private static func isName(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0 == UInt8(ascii: "_")
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }

    /// Every name with its kind, label names and help, sorted by name. The reference page lists
    /// these.
    package var catalogue: [(name: String, kind: Kind, labels: [String], help: String)] {
        self.families.withLock { families in
            families.sorted { $0.name < $1.name }.map { ($0.name, $0.kind, $0.labels, $0.help) }
        }
    }

    /// The Prometheus text exposition format, version 0.0.4, sorted by name.
    package func exposition() -> Bytes {
        // Values are read after the lock is released: a computed gauge may take a lock of its own.
        let families = self.families.withLock { $0 }.sorted { $0.name < $1.name }
        var text = ExpositionText()
        for family in families {
            text.header(family.name, family.help, family.kind)
            for series in family.series {
                let labels = Array(zip(family.labels, series.values))
                switch series.value {
                case .counter(let counter):
                    text.sample(family.name, labels, Double(counter.value))
                case .gauge(let gauge): text.sample(family.name, labels, Double(gauge.value))
                case .computed(let read): text.sample(family.name, labels, read())
                case .histogram(let histogram):
                    text.histogram(family.name, labels, histogram.snapshot())
                }
            }
        }
        return text.bytes
    }
}
