import StratusHTTP
import StratusModel

/// A server shell without sockets: feeds pieces, answers each request with an echo of it, and keeps
/// the unconsumed bytes while an answer is due.
struct EchoServer {
    private(set) var connection: HTTPServerConnection
    private(set) var sent = Bytes()
    private(set) var isClosed = false
    /// How many bytes are written per answer: of a length declared, or in chunks.
    var answersInChunks = false
    private var head: RequestHead?
    private var body = Bytes()
    private var left = Bytes()

    init(limits: HTTPLimits = HTTPLimits()) {
        self.connection = HTTPServerConnection(limits: limits)
    }

    var isIdle: Bool { self.connection.phase == .idle && self.left.isEmpty }

    mutating func receive(_ piece: Bytes) {
        guard !self.isClosed else { return }
        let input = self.left + piece
        self.left = []
        var at = 0
        while true {
            let start = at
            switch self.connection.next(input.span, &at) {
            case .needsMore:
                precondition(at == input.count, "something was left over without a reason")
                return
            case .head(let head):
                self.head = head
                self.body = []
                self.connection.writeContinue(into: &self.sent)
            case .body(let range):
                precondition(range.lowerBound >= start && range.upperBound <= at)
                precondition(!range.isEmpty && self.head != nil)
                self.body += input[range]
            case .bodyEnd:
                self.answer()
                if self.connection.mustClose {
                    self.isClosed = true
                    return
                }
            case .waiting:
                preconditionFailure("every request is answered at its end")
            case .refused(let refusal):
                self.connection.writeRefusal(refusal, into: &self.sent)
                self.isClosed = true
                return
            case .closed:
                self.isClosed = true
                return
            }
        }
    }

    private mutating func answer() {
        guard let head else { preconditionFailure("a body without a head") }
        var text = Bytes("\(head.method) \(head.path)".utf8)
        if let query = head.query { text += Bytes("?\(query)".utf8) }
        if !self.body.isEmpty { text += [0x20] + self.body }
        self.connection.beginResponse(
            status: 200, headers: [:], bodyLength: self.answersInChunks ? nil : text.count,
            into: &self.sent)
        self.connection.writeBody(text, into: &self.sent)
        self.connection.endResponse(into: &self.sent)
        self.head = nil
    }
}

/// Reads answers back with as little cleverness as possible, so that it shares no mistake with the
/// code under test.
enum PlainAnswers {
    struct Unreadable: Error { let rest: Bytes }

    static func read(_ bytes: Bytes, bodiless: Set<Int> = []) throws -> [HTTPCase.Answer] {
        var answers: [HTTPCase.Answer] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let end = Self.firstIndex(of: Bytes("\r\n\r\n".utf8), in: rest) else {
                throw Unreadable(rest: Bytes(rest))
            }
            let lines = String(decoding: rest[..<end], as: UTF8.self).split(separator: "\r\n")
            guard lines[0].hasPrefix("HTTP/1.1 "), let status = Int(lines[0].dropFirst(9).prefix(3))
            else { throw Unreadable(rest: Bytes(rest)) }
            rest = rest[(end + 4)...]
            if status == 100 {
                answers.append(HTTPCase.Answer(status: 100))
                continue
            }
            let length = lines.first { $0.hasPrefix("content-length: ") }.flatMap {
                Int($0.dropFirst(16))
            }
            guard let length else { throw Unreadable(rest: Bytes(rest)) }
            if bodiless.contains(answers.count) {
                answers.append(HTTPCase.Answer(status: status, isBodiless: true))
                continue
            }
            guard rest.count >= length else { throw Unreadable(rest: Bytes(rest)) }
            answers.append(HTTPCase.Answer(status: status, body: Bytes(rest.prefix(length))))
            rest = rest.dropFirst(length)
        }
        return answers
    }

    private static func firstIndex(of wanted: Bytes, in bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= wanted.count else { return nil }
        return (bytes.startIndex...(bytes.endIndex - wanted.count)).first {
            bytes[$0] == wanted[0] && bytes[$0..<($0 + wanted.count)].elementsEqual(wanted)
        }
    }
}
