import Foundation
import StratusDoubles
import StratusModel
import Testing

/// Public databases in buckets, from the gateway to the disk and back, with the mail between them.
@Suite struct BucketWalkTests {
    static let bucketCount = 4
    static let buckets = Bucket(0, of: Self.bucketCount)

    private var node: SimulatedNode

    init() throws {
        self.node = try SimulatedNode(
            over: SimulatedWorld(seed: 8), seed: 8, publicBucketCount: Self.bucketCount)
        // Mail is carried for ever: what passes is what a request needs, not a minute.
        self.node.patience = .milliseconds(500)
    }

    // MARK: Requests

    private struct Entry: Decodable {
        var recordName: String
        var recordChangeTag: String?
        var deleted: Bool?
        var serverErrorCode: String?
        var retryAfter: Int?
    }

    private struct Answer: Decodable { var records: [Entry] }

    private func modify(_ operations: [String], named name: String? = nil) throws -> [Entry] {
        let body = #"{"operations":[\#(operations.joined(separator: ","))]}"#
        let answer = try #require(
            self.node.post([("records/modify", body)], database: "public", named: name)[0])
        try #require(answer.status == 200, "\(answer)")
        return try JSONDecoder().decode(Answer.self, from: Data(answer.body.utf8)).records
    }

    private func lookUp(_ names: [String]) throws -> [Entry] {
        let body =
            #"{"records":[\#(names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ","))]}"#
        let answer = try #require(
            self.node.post([("records/lookup", body)], database: "public")[0])
        try #require(answer.status == 200, "\(answer)")
        return try JSONDecoder().decode(Answer.self, from: Data(answer.body.utf8)).records
    }

    private static func operation(
        _ kind: String, _ name: String, tag: String? = nil, to target: String? = nil,
        _ action: String = "VALIDATE", parent: String? = nil
    ) -> String {
        var record = #""recordName":"\#(name)""#
        if !kind.lowercased().contains("delete") {
            record += #","recordType":"Walk","fields":{"text":{"value":"text of \#(name)"}"#
            if let target {
                record +=
                    #","ref":{"value":{"recordName":"\#(target)","action":"\#(action)"}}"#
            }
            record += "}"
        }
        if let tag { record += #","recordChangeTag":"\#(tag)""# }
        if let parent { record += #","parent":{"recordName":"\#(parent)"}"# }
        return #"{"operationType":"\#(kind)","record":{\#(record)}}"#
    }

    private static func isElsewhere(_ one: String, _ other: String) -> Bool {
        Self.buckets.sibling(of: one) != Self.buckets.sibling(of: other)
    }

    /// The first name of the kind that is in another bucket than `name`.
    private static func stranger(_ prefix: String, to name: String) -> String {
        for number in 0... where Self.isElsewhere("\(prefix)\(number)", name) {
            return "\(prefix)\(number)"
        }
        return prefix
    }

    // MARK: Tests

    @Test func `a request's records go to all buckets, and its answers stay in order`() throws {
        let names = (0..<40).map { "n\($0)" }
        #expect(Set(names.map { Self.buckets.sibling(of: $0).number }).count == 4)
        let saved = try self.modify(names.map { Self.operation("create", $0) })
        #expect(saved.map(\.recordName) == names)
        #expect(saved.allSatisfy { $0.recordChangeTag != nil && $0.serverErrorCode == nil })

        let mixed = ["missing"] + names.reversed() + ["n0", "missing"]
        let found = try self.lookUp(mixed)
        #expect(found.map(\.recordName) == mixed)
        #expect(
            found.map { $0.serverErrorCode == "NOT_FOUND" } == mixed.map { $0 == "missing" })

        let second = try self.modify([
            Self.operation("update", "n1", tag: saved[1].recordChangeTag),
            Self.operation("update", "n2", tag: "wrong"), Self.operation("create", "n3"),
            Self.operation("forceDelete", "n4"), Self.operation("delete", "nobody"),
        ])
        #expect(
            second.map(\.serverErrorCode) == [nil, "CONFLICT", "CONFLICT", nil, "NOT_FOUND"])
        #expect(second[3].deleted == true)
        #expect(try self.lookUp(["n4"])[0].serverErrorCode == "NOT_FOUND")
    }

    @Test func `what a save needs from another bucket is made first, whatever the order`() throws {
        let child = "c"
        let target = Self.stranger("t", to: child)
        let parent = Self.stranger("p", to: child)
        let answers = try self.modify([
            Self.operation("create", child, to: target, parent: parent),
            Self.operation("create", target), Self.operation("create", parent),
        ])
        #expect(answers.allSatisfy { $0.serverErrorCode == nil }, "\(answers)")
        let refused = try self.modify([
            Self.operation("create", "d", to: Self.stranger("gone", to: "d")),
            Self.operation("create", "e", parent: Self.stranger("gone", to: "e")),
            Self.operation("create", "f"),
        ])
        #expect(
            refused.map(\.serverErrorCode) == ["VALIDATING_REFERENCE_ERROR", "BAD_REQUEST", nil])
    }

    @Test mutating func `references protect and cascade from bucket to bucket`() throws {
        let root = "root"
        let child = Self.stranger("child", to: root)
        let grandchild = Self.stranger("grand", to: child)
        let guardian = Self.stranger("guard", to: child)
        for answers in [
            try self.modify([Self.operation("create", root)]),
            try self.modify([Self.operation("create", child, to: root, "DELETE_SELF")]),
            try self.modify([Self.operation("create", grandchild, to: child, "DELETE_SELF")]),
            try self.modify([Self.operation("create", guardian, to: child)]),
        ] { #expect(answers[0].serverErrorCode == nil, "\(answers)") }
        self.node.work(for: .seconds(1))
        let refused = try self.modify([Self.operation("forceDelete", child)])
        #expect(refused[0].serverErrorCode == "VALIDATING_REFERENCE_ERROR", "\(refused)")
        #expect(try self.modify([Self.operation("forceDelete", guardian)])[0].deleted == true)
        self.node.work(for: .seconds(1))
        #expect(try self.modify([Self.operation("forceDelete", root)])[0].deleted == true)
        self.node.work(for: .seconds(3))
        for entry in try self.lookUp([root, child, grandchild, guardian]) {
            #expect(entry.serverErrorCode == "NOT_FOUND", "\(entry)")
        }
    }

    @Test func `a request with a name is carried out once in every bucket`() throws {
        let operations = (0..<12).map { Self.operation("create", "o\($0)") }
        let first = try self.modify(operations, named: "once")
        let second = try self.modify(operations, named: "once")
        #expect(first.allSatisfy { $0.serverErrorCode == nil })
        #expect(first.map(\.recordChangeTag) == second.map(\.recordChangeTag))
        // Without the name they are there already.
        #expect(
            try self.modify(operations).allSatisfy { $0.serverErrorCode == "CONFLICT" })
    }

    private struct QueryAnswer: Decodable {
        var records: [Entry]
        var continuationMarker: String?
    }

    /// All pages of a query: the names, page by page.
    private func query(_ query: String, limit: Int, named name: String = "") throws -> [[String]] {
        var pages: [[String]] = []
        var marker = ""
        while pages.count < 200 {
            let body = #"{"query":\#(query),"resultsLimit":\#(limit)\#(marker)}"#
            let answer = try #require(
                self.node.post([("records/query", body)], database: "public")[0])
            try #require(answer.status == 200, "\(answer)")
            let page = try JSONDecoder().decode(QueryAnswer.self, from: Data(answer.body.utf8))
            pages.append(page.records.map(\.recordName))
            guard let next = page.continuationMarker else { return pages }
            marker = #","continuationMarker":"\#(next)""#
        }
        Issue.record("a query without an end")
        return pages
    }

    @Test(arguments: [1, 7, 200])
    func `a query finds the records of all buckets, in its order, on pages of any size`(limit: Int)
        throws
    {
        // One name in the order of names, another in that of texts.
        let names = (10..<60).map { "n\($0)" }
        for start in stride(from: 0, to: names.count, by: 25) {
            _ = try self.modify(
                names[start..<(start + 25)].map { Self.operation("create", $0) })
        }
        _ = try self.modify(["n20", "n33"].map { Self.operation("forceDelete", $0) })
        let left = names.filter { $0 != "n20" && $0 != "n33" }

        let all = try self.query(#"{"recordType":"Walk"}"#, limit: limit)
        #expect(all.flatMap { $0 }.sorted() == left)
        // And the last one is known for the last: none is empty.
        #expect(all.allSatisfy { (1...limit).contains($0.count) })
        for isAscending in [true, false] {
            let pages = try self.query(
                #"{"recordType":"Walk","sortBy":[{"fieldName":"text","ascending":\#(isAscending)}]}"#,
                limit: limit)
            #expect(pages.flatMap { $0 } == (isAscending ? left : left.reversed()))
            #expect(pages.dropLast().allSatisfy { $0.count == limit })
        }
        let some = try self.query(
            #"{"recordType":"Walk","filterBy":[{"fieldName":"text","comparator":"BEGINS_WITH","fieldValue":{"value":"text of n4"}}],"sortBy":[{"fieldName":"text"}]}"#,
            limit: limit)
        #expect(some.flatMap { $0 } == left.filter { $0.hasPrefix("n4") })
        let none = try self.query(
            #"{"recordType":"Walk","filterBy":[{"fieldName":"text","comparator":"EQUALS","fieldValue":{"value":"nothing"}}]}"#,
            limit: limit)
        #expect(none.flatMap { $0 }.isEmpty)
    }

    @Test func `a full page with nothing behind it is the last one`() throws {
        let names = (0..<100).map { "f\($0)" }.filter { Self.buckets.sibling(of: $0).number == 1 }
        _ = try self.modify(names.prefix(4).map { Self.operation("create", $0) })
        for limit in [1, 2, 4] {
            let pages = try self.query(#"{"recordType":"Walk"}"#, limit: limit)
            #expect(pages.map(\.count) == Array(repeating: limit, count: 4 / limit))
        }
    }

    @Test func `a marker of one query goes on with no other, and no bytes of it trap`() throws {
        _ = try self.modify((0..<10).map { Self.operation("create", "m\($0)") })
        let first = try #require(
            self.node.post(
                [
                    (
                        "records/query",
                        #"{"query":{"recordType":"Walk","sortBy":[{"fieldName":"text"}]},"resultsLimit":3}"#
                    )
                ], database: "public")[0])
        let page = try JSONDecoder().decode(QueryAnswer.self, from: Data(first.body.utf8))
        let marker = try #require(page.continuationMarker)
        for query in [#"{"recordType":"Walk"}"#, #"{"recordType":"Other"}"#] {
            let answer = try #require(
                self.node.post(
                    [
                        (
                            "records/query",
                            #"{"query":\#(query),"continuationMarker":"\#(marker)"}"#
                        )
                    ], database: "public")[0])
            #expect(answer.status >= 400)
        }
    }

    @Test func `what several buckets cannot do is refused`() throws {
        _ = try self.modify([Self.operation("create", "a")])
        let atomic = try #require(
            self.node.post(
                [
                    (
                        "records/modify",
                        #"{"atomic":true,"operations":[\#(Self.operation("create", "b"))]}"#
                    )
                ], database: "public")[0])
        #expect(atomic.status == 400 && atomic.body.contains("atomic"))
        // A private database has no buckets.
        #expect(SimulatedNode.isSaved(self.node.post([SimulatedNode.create("mine")])[0]))
        let own = try #require(
            self.node.post([("records/query", #"{"query":{"recordType":"Walk"}}"#)])[0])
        #expect(own.status == 200, "\(own)")
    }
}
