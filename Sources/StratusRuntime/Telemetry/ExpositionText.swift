import StratusModel

/// Writes metrics as Prometheus reads them.
struct ExpositionText {
    var bytes = Bytes()

    mutating func header(_ name: String, _ help: String, _ kind: Metrics.Kind) {
        self.bytes += "# HELP \(name) \(Self.escaped(help, quotes: false))\n".utf8
        self.bytes += "# TYPE \(name) \(kind.rawValue)\n".utf8
    }

    mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Double) {
        self.bytes += name.utf8
        if !labels.isEmpty {
            self.bytes += "{".utf8
            for (index, label) in labels.enumerated() {
                if index > 0 { self.bytes += ",".utf8 }
                self.bytes += "\(label.0)=\"\(Self.escaped(label.1, quotes: true))\"".utf8
            }
            self.bytes += "}".utf8
        }
        self.bytes += " \(Self.number(value))\n".utf8
    }

    mutating func histogram(
        _ name: String, _ labels: [(String, String)], _ snapshot: LatencyHistogram.Snapshot
    ) {
        for bucket in snapshot.cumulative {
            let bound = ("le", Self.number(bucket.seconds))
            self.sample(name + "_bucket", labels + [bound], Double(bucket.count))
        }
        self.sample(name + "_bucket", labels + [("le", "+Inf")], Double(snapshot.count))
        self.sample(name + "_sum", labels, snapshot.sumSeconds)
        self.sample(name + "_count", labels, Double(snapshot.count))
    }

    /// Writes whole numbers without a point, and others as Swift does, which Prometheus can read.
    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value.rounded() == value && value.magnitude < 1e15 ? "\(Int64(value))" : "\(value)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\"" where quotes: out += "\\\""
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
