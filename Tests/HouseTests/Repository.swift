import Foundation
import Synchronization

/// The project's own files, read from where this test was compiled.
struct Repository {
    let root: URL

    init(testFile: String = #filePath) {
        self.root = URL(fileURLWithPath: testFile)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    }

    func text(_ path: String) throws -> String {
        try String(contentsOf: self.root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Every Swift file under `folder`, as (module, path relative to the root, text), sorted by
    /// path.
    func swiftFiles(under folder: String) throws -> [SourceFile] {
        try Self.files.withLock { files in
            if let known = files[folder] { return known }
            let read = try self.read(under: folder)
            files[folder] = read
            return read
        }
    }

    /// What was read, by folder: each law reads all of it.
    private static let files = Mutex<[String: [SourceFile]]>([:])

    private func read(under folder: String) throws -> [SourceFile] {
        let base = self.root.appendingPathComponent(folder)
        let found =
            FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
        return try found.filter { $0.hasSuffix(".swift") }.sorted().map { path in
            SourceFile(
                module: String(path.prefix { $0 != "/" }), path: "\(folder)/\(path)",
                text: try self.text("\(folder)/\(path)"))
        }
    }

    /// The targets of the package in the order they are written, with whether they are pure.
    func targets() throws -> [Target] {
        let manifest = try self.text("Package.swift")
        let pattern =
            /\.(target|executableTarget|systemLibrary|testTarget)\(\s*name: "([^"]+)"(.*?)(?=\n        \.|\n    \]\n)/
            .dotMatchesNewlines()
        return manifest.matches(of: pattern).map { match in
            Target(
                kind: String(match.output.1), name: String(match.output.2),
                isPure: match.output.3.contains("swiftSettings: pure"),
                dependencies: match.output.3.matches(of: /"(\w[\w-]*)"/).map {
                    String($0.output.1)
                })
        }
    }
}

struct Target {
    let kind: String
    let name: String
    let isPure: Bool
    /// Everything quoted in its declaration: targets, and words that are none.
    let dependencies: [String]
}

struct SourceFile {
    let module: String
    let path: String
    let text: String
    /// Numbered lines without their comments and string literals, so that words in prose do not
    /// count.
    let code: [(number: Int, line: String)]

    init(module: String, path: String, text: String) {
        self.module = module
        self.path = path
        self.text = text
        self.code = text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map {
            ($0.offset + 1, Self.stripped($0.element))
        }
    }

    /// Whether it has these bytes anywhere. A law looks only at the lines of files that have its
    /// words.
    func has(_ word: String) -> Bool { self.text.has(word) }

    private static func stripped(_ line: Substring) -> String {
        var kept: [UInt8] = []
        var isInside = false
        var previous: UInt8 = 0
        for byte in line.utf8 {
            if byte == UInt8(ascii: "\""), previous != UInt8(ascii: "\\") { isInside.toggle() }
            if !isInside {
                if byte == UInt8(ascii: "/"), previous == UInt8(ascii: "/") {
                    kept.removeLast()
                    break
                }
                kept.append(byte)
            }
            previous = byte
        }
        return String(decoding: kept, as: UTF8.self)
    }

    var imports: [(number: Int, module: String)] {
        self.code.compactMap { number, line in
            guard
                line.has("import "),
                let match = line.firstMatch(
                    of:
                        /^\s*(?:@\w+(?:\([^)]*\))?\s+)?(?:public |package |internal |private )?import (?:\w+ )?(\w+)/
                )
            else { return nil }
            return (number, String(match.output.1))
        }
    }
}

extension StringProtocol {
    /// Whether it has these bytes anywhere. Quicker than `contains`, which compares characters.
    func has(_ word: String) -> Bool {
        var word = word
        return word.withUTF8 { word in
            self.utf8.withContiguousStorageIfAvailable { text in
                var rest = UnsafeRawBufferPointer(text)
                while rest.count >= word.count,
                    let found = memchr(
                        rest.baseAddress!, Int32(word[0]), rest.count - word.count + 1)
                {
                    if memcmp(found, word.baseAddress!, word.count) == 0 { return true }
                    let place = UnsafeRawPointer(found) - rest.baseAddress!
                    rest = UnsafeRawBufferPointer(rebasing: rest[(place + 1)...])
                }
                return false
            } ?? false
        }
    }
}
