import StratusHTTP
package import StratusModel
package import StratusRuntime

/// The outcome of one request.
package enum Verdict: Sendable, Equatable {
    case done
    /// Not carried out, or nobody knows: to be asked again. With the wait that was asked for.
    case again(after: Duration?)
    case failed(String)
}

/// The memory of one client of a load.
package struct LoadClient: Sendable {
    package let number: Int
    /// The client's position in the feed.
    package var syncToken: String?
    package var generator: SeededGenerator

    package init(number: Int, seed: UInt64) {
        self.number = number
        self.generator = SeededGenerator(seed: seed ^ UInt64(number) &* 0x9E37_79B9)
    }

    /// Letters that compress no better than text does.
    mutating func text(_ count: Int) -> String {
        var bytes = Bytes()
        bytes.reserveCapacity(count)
        while bytes.count < count {
            var draw = self.generator.next()
            for _ in 0..<min(12, count - bytes.count) {
                bytes.append(UInt8(ascii: "a") + UInt8(draw % 26))
                draw /= 26
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A server under load: how its requests look and what its answers mean.
package protocol LoadTarget: Sendable {
    var name: String { get }
    /// Whether the target can run this kind of step; otherwise the load is refused before it
    /// begins.
    func supports(_ kind: Step.Kind) -> Bool
    /// Requests that create the place for the records, in order. Each must succeed; some may find
    /// it already done.
    func preparations() -> [HTTPClientRequest]
    func isPrepared(by status: Int, _ body: Bytes) -> Bool
    /// Makes records that the load will find; the answer is held against ``isPrepared(by:_:)``.
    func insertion(of keys: Range<Int>, by client: inout LoadClient) -> [HTTPClientRequest]
    func request(for step: Step, of client: inout LoadClient) -> HTTPClientRequest
    func judge(
        _ step: Step, status: Int, body: Bytes, of client: inout LoadClient
    ) -> Verdict
}

extension LoadTarget {
    package func insertion(
        of keys: Range<Int>, by client: inout LoadClient
    ) -> [HTTPClientRequest] {
        keys.map { self.request(for: .save($0), of: &client) }
    }

    static var json: HeaderFields { ["Content-Type": "application/json"] }
}

extension Bytes {
    /// Whether `text` stands anywhere in these bytes.
    func contains(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { needle in
            guard let first = needle.first, self.count >= needle.count else { return false }
            var start = 0
            while let found = self[start...].firstIndex(of: first),
                found + needle.count <= self.count
            {
                if self[found..<(found + needle.count)].elementsEqual(needle) { return true }
                start = found + 1
            }
            return false
        }
    }
}
