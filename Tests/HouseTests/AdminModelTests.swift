import Foundation
import Testing

/// The names of members of the administrators' answers and bodies stand in StratusAdminModel, once,
/// and so do the codes of its errors.
@Suite struct AdminModelTests {
    let repository = Repository()

    /// Files that read or write JSON which is no answer: a value of the key-value store, and JSON
    /// before it is known what it holds.
    static let others = [
        "StratusAdmin/Documents/KeyValuePages.swift", "StratusAdmin/Frame/AdminExchange.swift",
        "StratusControl/Frame/ControlContext.swift",
        "StratusControl/Documents/KeyValueCommands.swift",
        // An export is a format of its own.
        "StratusContainers/Archive/ArchiveLines.swift",
        "StratusContainers/Archive/UserArchive.swift",
        "StratusContainers/Archive/ArchivedDocuments.swift",
        "StratusContainers/KeyValue/PropertyListReader.swift", "StratusContainers/Directory.swift",
    ]

    @Test func `nobody but the model writes or reads a member of an answer by its name`() throws {
        var seen: Set<String> = []
        for file in try self.repository.swiftFiles(under: "Sources")
        where ["StratusAdmin", "StratusControl", "StratusContainers"].contains(file.module) {
            let isOther = Self.others.contains { file.path.hasSuffix($0) }
            for (number, line) in file.code where line.has("JSON") {
                let writes = line.contains(/\b(JSONWriter|JSONDocument|JSONValue)\b/)
                if writes, isOther { seen.insert(file.path) }
                #expect(!writes || isOther, "\(file.path):\(number) \(line)")
            }
            guard file.module != "StratusContainers", file.has("[\"") || file.has(".member(\"")
            else { continue }
            for (index, line) in file.text.split(
                separator: "\n", omittingEmptySubsequences: false
            ).enumerated() {
                #expect(
                    !line.contains(/\["\w+"\]\?\.|\.member\("/), "\(file.path):\(index + 1) \(line)"
                )
            }
        }
        #expect(seen.count == Self.others.count, "a file of the list has no JSON any more: \(seen)")
    }

    @Test func `codes of errors are written in one enumeration`() throws {
        let list = try self.repository.text("Sources/StratusAdminModel/Form/AdminCode.swift")
        let codes = list.matches(of: /case \w+ = "([A-Z_]+)"/).map { String($0.output.1) }
        #expect(codes.count > 25)
        for file in try self.repository.swiftFiles(under: "Sources")
        where ["StratusAdmin", "StratusControl"].contains(file.module)
            && codes.contains(where: { file.has("\"\($0)\"") })
        {
            for (index, line) in file.text.split(
                separator: "\n", omittingEmptySubsequences: false
            ).enumerated() where !line.contains("///") {
                for code in codes {
                    #expect(!line.contains("\"\(code)\""), "\(file.path):\(index + 1) \(code)")
                }
            }
        }
    }
}
