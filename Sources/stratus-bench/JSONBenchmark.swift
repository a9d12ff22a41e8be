import Glibc
import StratusHTTP
import StratusModel

/// Reads and writes a body as `records/modify` gets it: ten records of ten fields, about 7 KB.
extension Benchmark {
    static let json = Benchmark(
        name: "json",
        summary: "reads and writes a records/modify body; --repeat COUNT"
    ) { arguments in
        let count = Self.option("repeat", in: arguments).flatMap { Int($0) } ?? 20_000
        let body = JSONBenchmark.body()
        print("body: \(body.count) bytes, \(count) times, thread CPU time, best of 5")
        let work: [(name: String, once: () throws -> Int)] = [
            ("parse to tape", { try JSONDocument(parsing: body).root.kind == .object ? 1 : 0 }),
            ("parse, every value taken, no strings", { try JSONBenchmark.touch(body) }),
            ("parse to structs with strings", { try JSONBenchmark.records(body).count }),
            ("parse to structs, dictionary of fields", { try JSONBenchmark.tables(body).count }),
        ]
        for (name, once) in work { try JSONBenchmark.measure(name, body.count, count, once) }
        let records = try JSONBenchmark.records(body)
        let written = JSONBenchmark.write(records)
        guard written.count == body.count else { throw JSONBenchmark.Mismatch() }
        try JSONBenchmark.measure("write from structs", written.count, count) {
            JSONBenchmark.write(records).count
        }
    }

    static let httpMessage = Benchmark(
        name: "http-message",
        summary: "parses requests and writes answers without sockets; --repeat COUNT"
    ) { arguments in
        let count = Self.option("repeat", in: arguments).flatMap { Int($0) } ?? 200_000
        let small =
            "POST /database/1/iCloud.org.example.shelves/development/public/records/query?ckAPIToken="
            + "5c0f5c0f5c0f5c0f5c0f5c0f5c0f5c0f HTTP/1.1\r\nHost: localhost:8080\r\n"
            + "User-Agent: curl/8.5.0\r\nAccept: */*\r\nContent-Type: application/json\r\n"
            + "Content-Length: 300\r\n\r\n" + String(repeating: "x", count: 300)
        let browser =
            "POST /database/1/iCloud.org.example.shelves/development/public/records/query?ckAPIToken="
            + "5c0f5c0f5c0f5c0f5c0f5c0f5c0f5c0f HTTP/1.1\r\nHost: ck.example.org\r\n"
            + "Connection: keep-alive\r\nContent-Length: 300\r\nsec-ch-ua-platform: \"macOS\"\r\n"
            + "User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 "
            + "(KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36\r\n"
            + "sec-ch-ua: \"Chromium\";v=\"131\", \"Not_A Brand\";v=\"24\"\r\n"
            + "content-type: text/plain\r\nsec-ch-ua-mobile: ?0\r\nAccept: */*\r\n"
            + "Origin: https://app.example.org\r\nSec-Fetch-Site: cross-site\r\n"
            + "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n"
            + "Referer: https://app.example.org/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
            + "Accept-Language: en-GB,en;q=0.9\r\n\r\n" + String(repeating: "x", count: 300)
        for (name, text) in [("5 headers", small), ("16 headers", browser)] {
            let received = Bytes(text.utf8)
            let answer = Bytes(repeating: 0x78, count: 300)
            let headers: HeaderFields = [
                "content-type": "application/json; charset=UTF-8",
                "x-apple-request-uuid": "4d7a2c6e-0b0d-4c4f-9a35-5f3d8a1c22e7",
            ]
            let date = Bytes("date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".utf8)
            var connection = HTTPServerConnection()
            var out = Bytes()
            try JSONBenchmark.measure(name + ": parse, answer 300 bytes", received.count, count) {
                var at = 0
                var bodySize = 0
                out.removeAll(keepingCapacity: true)
                while true {
                    switch connection.next(received.span, &at) {
                    case .head(let head): bodySize += head.headers["content-length"] == nil ? 1 : 0
                    case .body(let range): bodySize += range.count
                    case .bodyEnd:
                        connection.beginResponse(
                            status: 200, headers: headers, bodyLength: answer.count,
                            prewritten: date, into: &out)
                        connection.writeBody(answer.span, into: &out)
                        connection.endResponse(into: &out)
                        return bodySize
                    case .needsMore, .waiting, .closed, .refused:
                        throw JSONBenchmark.Mismatch()
                    }
                }
            }
        }
    }
}

enum JSONBenchmark {
    struct Mismatch: Error {}

    enum Value {
        case text(String)
        case integer(Int64)
        case double(Double)
        case bytes(Bytes)
        case texts([String])
    }

    struct Record {
        var name: String
        var type: String
        var operation: String
        var changeTag: String
        var fields: [(name: String, value: Value)]
    }

    /// Best of five, in thread CPU time: the machine is shared.
    static func measure(
        _ name: String, _ size: Int, _ count: Int, _ once: () throws -> Int
    ) throws {
        var best = Double.infinity
        var sink = 0
        for _ in 0..<5 {
            let start = Self.threadSeconds()
            for _ in 0..<count { sink &+= try once() }
            best = min(best, Self.threadSeconds() - start)
        }
        guard sink != 1 else { throw Mismatch() }
        let perOnce = best / Double(count)
        let rate = Double(size) / perOnce / 1e6
        print("\(name): \(Int(rate)) MB/s, \(Int(perOnce * 1e9)) ns")
    }

    private static func threadSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func body() -> Bytes {
        var random = SeededGenerator(seed: 7)
        let records = (0..<10).map { index in
            Record(
                name: "book-\(random.next())", type: "Book", operation: "update",
                changeTag: String(random.next() % 1_000_000, radix: 36),
                fields: [
                    ("title", .text("The Atlas of Rivers, volume \(index) \"revised\"")),
                    ("author", .text("José Ångström")),
                    ("pages", .integer(Int64(random.next() % 900))),
                    ("isbn", .text("978-3-16-14841\(index)-0")),
                    ("price", .double(19.25 + Double(index))),
                    ("added", .integer(1_763_650_000_000 + Int64(random.next() % 100_000))),
                    (
                        "cover",
                        .bytes((0..<60).map { _ in UInt8(truncatingIfNeeded: random.next()) })
                    ),
                    ("tags", .texts(["geography", "water", "maps"])),
                    ("shelf", .text("second floor, left of the window\nbehind the plants")),
                    ("rating", .double(4.5)),
                ])
        }
        return Self.write(records)
    }

    static func write(_ records: [Record]) -> Bytes {
        var writer = JSONWriter(reserving: 8192)
        writer.beginObject()
        writer.key("operations")
        writer.beginArray()
        for record in records {
            writer.beginObject()
            writer.member("operationType", record.operation)
            writer.key("record")
            writer.beginObject()
            writer.member("recordName", record.name)
            writer.member("recordType", record.type)
            writer.member("recordChangeTag", record.changeTag)
            writer.key("fields")
            writer.beginObject()
            for (name, value) in record.fields {
                writer.key(name)
                writer.beginObject()
                writer.key("value")
                switch value {
                case .text(let text):
                    writer.write(text)
                    writer.member("type", "STRING")
                case .integer(let value):
                    writer.write(value)
                    writer.member("type", "INT64")
                case .double(let value):
                    writer.write(value)
                    writer.member("type", "DOUBLE")
                case .bytes(let bytes):
                    writer.write(base64: bytes)
                    writer.member("type", "BYTES")
                case .texts(let texts):
                    writer.beginArray()
                    for text in texts { writer.write(text) }
                    writer.endArray()
                    writer.member("type", "STRING_LIST")
                }
                writer.endObject()
            }
            writer.endObject()
            writer.endObject()
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return writer.finish()
    }

    static func records(_ body: Bytes) throws -> [Record] {
        let document = try JSONDocument(parsing: body)
        guard let operations = document.root["operations"]?.array else { throw Mismatch() }
        var records: [Record] = []
        for operation in operations {
            guard let kind = operation["operationType"]?.string, let record = operation["record"],
                let fields = record["fields"]?.object
            else { throw Mismatch() }
            var values: [(name: String, value: Value)] = []
            for field in fields { values.append((field.name, try Self.value(field.value))) }
            records.append(
                Record(
                    name: record["recordName"]?.string ?? "",
                    type: record["recordType"]?.string ?? "", operation: kind,
                    changeTag: record["recordChangeTag"]?.string ?? "", fields: values))
        }
        return records
    }

    static func tables(_ body: Bytes) throws -> [[String: Value]] {
        let document = try JSONDocument(parsing: body)
        guard let operations = document.root["operations"]?.array else { throw Mismatch() }
        var tables: [[String: Value]] = []
        for operation in operations {
            guard let fields = operation["record"]?["fields"]?.object else { throw Mismatch() }
            var table: [String: Value] = [:]
            for field in fields { table[field.name] = try Self.value(field.value) }
            tables.append(table)
        }
        return tables
    }

    private static func value(_ field: JSONValue) throws -> Value {
        guard let value = field["value"], let type = field["type"] else { throw Mismatch() }
        if type.isString("STRING"), let text = value.string { return .text(text) }
        if type.isString("INT64"), let integer = value.int64 { return .integer(integer) }
        if type.isString("DOUBLE"), let double = value.double { return .double(double) }
        if type.isString("BYTES"), let bytes = value.base64 { return .bytes(bytes) }
        if type.isString("STRING_LIST"), let array = value.array {
            return .texts(array.compactMap(\.string))
        }
        throw Mismatch()
    }

    /// Visits every value; numbers are converted, strings only compared.
    static func touch(_ body: Bytes) throws -> Int {
        func visit(_ value: JSONValue) -> Int {
            switch value.kind {
            case .object: value.object?.reduce(0) { $0 + visit($1.value) } ?? 0
            case .array: value.array?.reduce(0) { $0 + visit($1) } ?? 0
            case .string: value.isString("STRING") ? 1 : 0
            case .number: value.double.map { Int($0) & 1 } ?? 0
            case .bool, .null: 0
            }
        }
        return visit(try JSONDocument(parsing: body).root)
    }
}
