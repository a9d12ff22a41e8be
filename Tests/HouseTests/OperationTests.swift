import Testing

/// The laws of operations and questions that are types, and of the values in them.
@Suite struct OperationTests {
    let repository = Repository()

    /// What every operation and every question says for itself.
    private static let said = ["number", "bound", "payer", "need", "adds"]

    @Test func `number, bound, payer, need and adds have no default`() throws {
        var count = 0
        for file in try self.repository.swiftFiles(under: "Sources") {
            count += Self.declarations(of: file.text, of: "protocol").count
            for (name, body) in Self.declarations(of: file.text, of: "extension") {
                for property in Self.said {
                    #expect(
                        !body.contains("var \(property):") && !body.contains("let \(property) "),
                        "\(file.path): \(property) of \(name)")
                }
            }
        }
        #expect(count == 6)
    }

    /// The bodies of protocols of operations and questions, or of their extensions.
    private static func declarations(of text: String, of kind: String) -> [(String, String)] {
        let head =
            #/\b(protocol|extension) ((?:Partition|Database|Single|Point)(?:Operation|Question))\b/#
        var found: [(String, String)] = []
        var name: String?
        var body = ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if name == nil, line.contains(kind), let match = line.firstMatch(of: head),
                match.output.1 == kind, !line.contains("///")
            {
                name = String(match.output.2)
            } else if let known = name {
                if line == "}" {
                    found.append((known, body))
                    (name, body) = (nil, "")
                } else {
                    body += line + "\n"
                }
            }
        }
        return found
    }

    @Test func `a value of a form has no memberwise initialiser`() throws {
        let conforming =
            #/(?:struct|enum|extension) (\w+): [^{]*\b(?:FormValue|FormChoice|DatabaseOperation|PartitionOperation|SingleQuestion|PointQuestion)\b/#
        var count = 0
        for file in try self.repository.swiftFiles(under: "Sources")
        where ["Form", "Operation", "Question"].contains(where: { file.has($0) }) {
            let values = Set(file.text.matches(of: conforming).map { String($0.output.1) })
            if values.isEmpty { continue }
            count += values.count
            let found = Self.memberwise(in: file.text).filter { values.contains($0) }
            #expect(found.isEmpty, "\(file.path): \(found)")
        }
        #expect(count > 15)
    }

    @Test func `a memberwise initialiser is found, and one of a single value is none`() {
        let text = """
            package struct Row: FormValue {
                package var a = 0
                package init(a: Int, b: Int) {
                    self.a = a
                    self.b = b
                }
            }
            struct Name {
                init(_ raw: Int) { self.raw = raw }
                init(text: String) { self.raw = Int(text) }
            }
            """
        #expect(Self.memberwise(in: text) == ["Row"])
    }

    /// The types with an initialiser that assigns its labelled parameters, and does nothing else.
    private static func memberwise(in text: String) -> [String] {
        var found: [String] = []
        // The types around a line, by how deep each is indented.
        var around: [(depth: Int, name: String)] = []
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (place, line) in lines.enumerated() {
            let depth = line.prefix { $0 == " " }.count
            let code = line.dropFirst(depth)
            if code.isEmpty || code.hasPrefix("//") { continue }
            while let last = around.last, last.depth >= depth, code.first != "{" {
                around.removeLast()
            }
            if let match = code.firstMatch(of: #/(?:struct|enum|class|extension) (\w+)/#),
                !code.contains("func ")
            {
                around.append((depth, String(match.output.1)))
            }
            guard code.contains(#/^(?:package |private )?init\(/#), let type = around.last?.name
            else {
                continue
            }
            let rest = lines[place...].prefix { $0 == line || $0 != line.prefix(depth) + "}" }
            let head =
                rest.prefix { !$0.hasSuffix("{") } + rest.drop { !$0.hasSuffix("{") }.prefix(1)
            let body = rest.dropFirst(head.count)
            let assigns = body.filter { $0.contains(#/^ *self\.(\w+) = (\w+)$/#) }
            let isLabelled = head.joined().contains(#/[(,]\s*\w+: /#)
            if isLabelled, !body.isEmpty, assigns.count == body.count { found.append(type) }
        }
        return found
    }

    @Test func `a list names its bound`() throws {
        for file in try self.repository.swiftFiles(under: "Sources")
        where file.has("FormValue") || file.has("atMost") {
            for match in file.text.matches(
                of: #/extension (?:Array|Set|Dictionary)\b[^{]*: FormValue[^{]*/#)
            {
                #expect(match.output.contains("Element == UInt8"), "\(file.path): \(match.output)")
            }
            #expect(
                !file.text.contains(#/atMost[^:,)]*: Int =/#),
                "\(file.path) has a bound for all lists")
        }
    }
}
