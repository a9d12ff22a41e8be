import Foundation
import Testing

/// The walls between the modules: who may import whom, and what a pure module may not say.
@Suite struct ImportOrderTests {
    let repository = Repository()

    @Test func `a module imports only modules above it`() throws {
        let order = try self.repository.targets().map(\.name)
        #expect(order.count > 20, "the manifest was not understood")
        for file in try self.repository.swiftFiles(under: "Sources") {
            let own = try #require(
                order.firstIndex(of: file.module), "\(file.path) is in no target")
            for (number, imported) in file.imports {
                guard let other = order.firstIndex(of: imported) else { continue }
                #expect(
                    other < own, "\(file.path):\(number) imports \(imported), which stands below it"
                )
            }
        }
    }

    @Test func `a pure module imports nothing of the outside world`() throws {
        let pure = try self.repository.targets().filter(\.isPure).map(\.name)
        #expect(pure.contains("StratusModel") && pure.contains("StratusConsensus"))
        for file in try self.repository.swiftFiles(under: "Sources")
        where pure.contains(file.module) {
            for (number, imported) in file.imports {
                #expect(pure.contains(imported), "\(file.path):\(number) imports \(imported)")
            }
        }
    }

    /// The words that a pure module may not use. They are those of the outside world: time, chance,
    /// waiting, output.
    ///
    /// `words` are looked for first: a regular expression for every line would take longer than all
    /// other tests together.
    static let banned: [(name: String, words: [String], pattern: String)] = [
        ("waits", ["async", "await"], #"\b(async|await)\b"#),
        ("prints", ["print(", "Print(", "dump("], #"\b(print|debugPrint|dump)\("#),
        ("reads a clock", ["Clock", "Date"], #"\b(ContinuousClock|SuspendingClock|Date)\b"#),
        ("starts a task", ["Task"], #"\bTask\b\s*[({.]"#),
        ("locks", ["Mutex<", "Atomic<"], #"\b(Mutex|Atomic)<"#),
        (
            "draws from the system", ["andom", "shuffled"],
            #"SystemRandomNumberGenerator|\.random\(in: [^,)]*\)|\.(shuffled|randomElement)\(\)"#
        ),
        ("hashes with a seed of the process", ["ash"], #"\bHasher\(\)|\.hashValue\b"#),
    ]

    /// Protocols of the outside world stand in StratusModel and say `async` nowhere either.
    @Test func `a pure module neither waits, nor prints, nor draws, nor reads a clock`() throws {
        let pure = try self.repository.targets().filter(\.isPure).map(\.name)
        for file in try self.repository.swiftFiles(under: "Sources")
        where pure.contains(file.module) {
            for (number, line) in file.code {
                for (name, words, pattern) in Self.banned
                where words.contains(where: { line.has($0) }) {
                    #expect(
                        try line.firstMatch(of: Regex(pattern)) == nil,
                        "\(file.path):\(number) \(name): \(line)")
                }
            }
        }
    }

    @Test func `only the runtime and the simulator know what the outside world is made of`() throws
    {
        let allowed: Set = [
            "StratusRuntime", "StratusTLS", "StratusCompression", "StratusSQLite", "StratusProcess",
            "StratusControl", "StratusNode", "StratusSimulation", "StratusLoad", "stratus",
            "stratusctl", "stratus-sim",
            "stratus-load",
            "stratus-bench", "stratus-manual",
        ]
        for file in try self.repository.swiftFiles(under: "Sources")
        where !allowed.contains(file.module) {
            for (number, imported) in file.imports {
                #expect(
                    !["Glibc", "Dispatch"].contains(imported),
                    "\(file.path):\(number) imports \(imported)")
            }
        }
    }

    /// Everything that a target links, directly or by others.
    private func linked(by name: String) throws -> Set<String> {
        let targets = try self.repository.targets()
        var all: Set<String> = []
        var next = [name]
        while let one = next.popLast() {
            guard let target = targets.first(where: { $0.name == one }), all.insert(one).inserted
            else { continue }
            next += target.dependencies
        }
        return all
    }

    @Test func `stratusctl and stratus-load link no node, and stratusctl no database`() throws {
        let control = try self.linked(by: "stratusctl")
        #expect(control.contains("StratusControl") && control.contains("COpenSSL"))
        #expect(!control.contains("CSQLite") && !control.contains("StratusStorage"))
        #expect(!control.contains("StratusNode"))
        #expect(try self.linked(by: "stratus").contains("CSQLite"))
        let load = try self.linked(by: "stratus-load")
        #expect(load.contains("StratusControl") && !load.contains("StratusNode"))
    }

    @Test func `the architecture page names every module in the order of the manifest`() throws {
        let page = try self.repository.text("Docs/internals/architecture.md")
        var last = page.startIndex
        for target in try self.repository.targets()
        where target.name.hasPrefix("Stratus") && target.kind == "target" {
            let row = try #require(
                page.range(of: "\n| `\(target.name)` |"), "\(target.name) is not on the page")
            #expect(last < row.lowerBound, "\(target.name) stands elsewhere in the manifest")
            last = row.lowerBound
        }
    }
}
