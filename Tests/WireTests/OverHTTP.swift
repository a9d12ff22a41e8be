import Foundation
import Synchronization
import WireScenarios

/// A wire of real requests to real processes, each over a connection of its own. Requests go to the
/// nodes in turn.
final class OverHTTP: Wire {
    let server: ServerProcess
    /// The number of buckets of each container's public database.
    private let bucketCount: Int
    /// The same of each private database.
    private let zoneBucketCount: Int
    private let containerCount = Atomic(0)
    private let connectionCount = Atomic(0)

    init(_ server: ServerProcess, bucketCount: Int = 1, zoneBucketCount: Int = 1) {
        self.server = server
        self.bucketCount = bucketCount
        self.zoneBucketCount = zoneBucketCount
    }

    /// One server for all conversations: each has its own container. It ends with this process.
    static let strict = Task { OverHTTP(try await ServerProcess(schema: "strict")) }
    /// The same server, and containers whose public records are spread.
    static let spread = Task { OverHTTP(try await strict.value.server, bucketCount: 4) }
    /// The same server, and containers whose owners' custom zones are spread.
    static let zoned = Task { OverHTTP(try await strict.value.server, zoneBucketCount: 4) }

    /// A server where schemas grow by saving, and containers whose public records are spread.
    static let growing = Task {
        OverHTTP(try await ServerProcess(schema: "justInTime"), bucketCount: 4)
    }

    /// Three nodes, and containers whose owners' custom zones are spread.
    static let zonedCluster = Task {
        OverHTTP(try await ServerProcess.cluster(), zoneBucketCount: 4)
    }

    func connect() throws -> Socket {
        let number = self.connectionCount.add(1, ordering: .relaxed).newValue
        let url = self.server.urls[number % self.server.urls.count]
        return try Socket(host: url.host ?? "127.0.0.1", port: UInt16(url.port ?? 80))
    }

    func send(_ request: WireRequest) async throws -> WireAnswer {
        var socket = try self.connect()
        socket.send(Self.message(request))
        guard let answer = try socket.receive() else {
            throw ServerProcess.Failure(description: "closed without an answer")
        }
        return WireAnswer(status: answer.status, headers: answer.headers, body: answer.body)
    }

    static func message(_ request: WireRequest, close: Bool = true) -> [UInt8] {
        var head = "\(request.method) \(request.target) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in request.headers { head += "\(name): \(value)\r\n" }
        if !request.body.isEmpty || request.method != "GET" {
            head += "Content-Length: \(request.body.count)\r\n"
        }
        if close { head += "Connection: close\r\n" }
        return Array((head + "\r\n").utf8) + request.body
    }

    func makeContainer() async throws -> String {
        let number = self.containerCount.add(1, ordering: .relaxed).newValue
        let container = "iCloud.wire.n\(number).in\(self.bucketCount).by\(self.zoneBucketCount)"
        if self.bucketCount > 1 || self.zoneBucketCount > 1 {
            let zones =
                self.zoneBucketCount > 1
                ? #","placement":"zone","zoneBuckets":\#(self.zoneBucketCount)"# : ""
            let body = #"{"buckets":\#(self.bucketCount)\#(zones)}"#
            var status = try self.administer("POST", container, body: body)
            // A cluster that was just formed takes no placement until its feature level is raised.
            for _ in 0..<100 where status == 503 {
                try await Task.sleep(for: .milliseconds(100))
                status = try self.administer("POST", container, body: body)
            }
            guard status == 201 else {
                throw ServerProcess.Failure(description: "no container: \(status)")
            }
        }
        let status = try self.administer("PUT", container, "/schema", body: Library.schema)
        guard (200..<300).contains(status) else {
            throw ServerProcess.Failure(description: "the schema was not imported: \(status)")
        }
        return container
    }

    func administer(
        _ method: String, _ container: String, _ path: String = "", body: String
    ) throws -> Int {
        guard let admin = self.server.adminURL else {
            throw ServerProcess.Failure(description: "no administrators' listener")
        }
        let token = try String(contentsOfFile: self.server.adminTokenFile, encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        var socket = try Socket(host: admin.host ?? "127.0.0.1", port: UInt16(admin.port ?? 80))
        socket.send(
            Self.message(
                WireRequest(
                    method: method,
                    target: "/v1/containers/\(container)/environments/development\(path)",
                    headers: [("Authorization", "Bearer \(token)")], body: Array(body.utf8))))
        return try socket.receive()?.status ?? 0
    }
}
