package import StratusCommandLine

/// A column of the table that people see of rows of an answer.
package struct AnswerColumn<Row> {
    let column: TextTable.Column
    let text: (Row) -> String

    package init(_ title: String, alignsRight: Bool = false, text: @escaping (Row) -> String) {
        self.column = TextTable.Column(title, alignsRight: alignsRight)
        self.text = text
    }

    package init(_ title: String, _ member: KeyPath<Row, String>) {
        self.init(title) { $0[keyPath: member] }
    }

    package init(_ title: String, _ member: KeyPath<Row, String?>) {
        self.init(title) { $0[keyPath: member] ?? "" }
    }

    package init(_ title: String, _ member: KeyPath<Row, [String]>, separator: String = ", ") {
        self.init(title) { $0[keyPath: member].joined(separator: separator) }
    }

    package init(_ title: String, alignsRight: Bool = false, _ member: KeyPath<Row, Int64>) {
        self.init(title, alignsRight: alignsRight) { "\($0[keyPath: member])" }
    }

    /// Yes or no.
    package init(_ title: String, _ member: KeyPath<Row, Bool>) {
        self.init(title) { $0[keyPath: member] ? "yes" : "no" }
    }
}

/// Rows that people see as a table.
package protocol TabularRow {
    static var columns: [AnswerColumn<Self>] { get }
}

extension TextTable {
    package static func text<Row: TabularRow>(_ rows: [Row]) -> String {
        Self.text(rows, Row.columns)
    }

    package static func text<Row>(_ rows: [Row], _ columns: [AnswerColumn<Row>]) -> String {
        var table = TextTable(columns.map(\.column))
        for row in rows { table.append(columns.map { $0.text(row) }) }
        return table.write()
    }

    /// One object as lines of title and value. A column without a value is left out.
    package static func text<Row>(
        of one: Row, _ columns: [AnswerColumn<Row>], alignsRight: Bool = false
    ) -> String {
        var table = TextTable([.init(""), .init("", alignsRight: alignsRight)])
        for column in columns {
            let text = column.text(one)
            if !text.isEmpty { table.append([column.column.title, text]) }
        }
        return table.write()
    }
}
