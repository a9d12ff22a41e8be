/// Rows and columns for people: as wide as needed, two spaces apart, numbers to the right.
package struct TextTable: Sendable {
    package struct Column: Sendable {
        package var title: String
        package var alignsRight: Bool
        package init(_ title: String, alignsRight: Bool = false) {
            self.title = title
            self.alignsRight = alignsRight
        }
    }

    private let columns: [Column]
    private var rows: [[String]] = []

    package init(_ columns: [Column]) {
        precondition(!columns.isEmpty, "a table without columns")
        self.columns = columns
    }

    package mutating func append(_ row: [String]) {
        precondition(row.count == self.columns.count, "a row of \(row.count) cells")
        self.rows.append(row.map(Self.plain))
    }

    /// Writes lines without trailing spaces, each ended. A table whose titles are all empty has no
    /// title line.
    package func write() -> String {
        let hasTitles = self.columns.contains { !$0.title.isEmpty }
        let all = (hasTitles ? [self.columns.map(\.title)] : []) + self.rows
        let widths = self.columns.indices.map { column in
            all.map { $0[column].count }.max() ?? 0
        }
        var text = ""
        for row in all {
            var line = ""
            for (index, cell) in row.enumerated() {
                let space = String(repeating: " ", count: widths[index] - cell.count)
                line += self.columns[index].alignsRight ? space + cell : cell + space
                line += "  "
            }
            while line.last == " " { line.removeLast() }
            text += line + "\n"
        }
        return text
    }

    /// Makes a cell one line of printable text: text from a node may contain anything.
    private static func plain(_ cell: String) -> String {
        var out = String.UnicodeScalarView()
        for scalar in cell.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            out.append(isControl ? "\u{FFFD}" : scalar)
        }
        return String(out)
    }
}
