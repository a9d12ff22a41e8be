import Foundation
import Testing

/// There is one store of rows. Code that is generic over stores is not specialised in a release
/// build: each read and write becomes a call through a witness table.
@Suite struct RowsTests {
    let repository = Repository()

    /// What reads and writes rows: a class, a view of it, and what reads points.
    private static let stores = "Rows|RowView|PointReader"

    @Test func `rows are Rows, a RowView or a PointReader, and never generic`() throws {
        let banned = try [
            #"\b(some|any) (\#(Self.stores)|Row(Store|Reader|Writer))\b"#, #"<\w+: (any )?Row\w*>"#,
            #"\bprotocol Row(?!File\b)"#,
        ].map { try Regex($0) }
        var fileHolders: Set<String> = []
        for folder in ["Sources", "Tests"] {
            for file in try self.repository.swiftFiles(under: folder)
            where file.module != "HouseTests" && file.has("Row") {
                for (number, line) in file.code where line.has("Row") {
                    let place: Comment = "\(file.path):\(number): \(line)"
                    for pattern in banned { #expect(!line.contains(pattern), place) }
                    if line.contains("any RowFile") { fileHolders.insert(file.path) }
                    #expect(!line.contains("some RowFile"), place)
                }
            }
        }
        // The file lies beneath the store, and nobody goes round it.
        #expect(fileHolders == ["Sources/StratusRows/Rows/Rows.swift"])
    }
}
