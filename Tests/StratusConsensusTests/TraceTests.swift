import Foundation
import Testing

/// Conversations between replicas, as text a reviewer can read and disagree with.
///
/// A file holds blocks: a comment if any, a command, `----`, the messages, an empty line. Run with
/// `STRATUS_REWRITE_TRACES=1` to record today's messages, then read the difference.
@Suite struct TraceTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Traces")

    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".txt") }.sorted()

    @Test func `there are traces to read`() { #expect(Self.names.count >= 5) }

    @Test(arguments: names) func `replicas say what the trace says`(name: String) throws {
        let url = Self.folder.appendingPathComponent(name)
        let text = try String(contentsOf: url, encoding: .utf8)
        var conversation = Conversation()
        var rewritten: [String] = []
        for block in text.components(separatedBy: "\n\n") {
            let lines = block.split(separator: "\n", omittingEmptySubsequences: false).map {
                String($0)
            }.filter { !$0.isEmpty }
            let head = lines.prefix { $0 != "----" }
            let expected = lines.dropFirst(head.count + 1).joined(separator: "\n")
            var heard = ""
            for command in head where !command.hasPrefix("#") {
                heard = conversation.run(command)
            }
            if head.contains(where: { !$0.hasPrefix("#") }) {
                rewritten.append((head + ["----", heard]).joined(separator: "\n"))
                if ProcessInfo.processInfo.environment["STRATUS_REWRITE_TRACES"] == nil {
                    #expect(
                        heard == expected, "\(name): \(head.joined(separator: "; "))")
                }
            } else if !head.isEmpty {
                rewritten.append(head.joined(separator: "\n"))
            }
        }
        if ProcessInfo.processInfo.environment["STRATUS_REWRITE_TRACES"] != nil {
            try (rewritten.joined(separator: "\n\n") + "\n").write(
                to: url, atomically: true, encoding: .utf8)
        }
    }
}
