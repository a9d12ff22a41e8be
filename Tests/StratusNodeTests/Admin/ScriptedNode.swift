import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization

/// A node that answers as it is told, and writes down what it was asked. `stratusctl` cannot tell
/// it from a real one.
final class ScriptedNode: HTTPHandler {
    private struct State {
        var answers: [String: [String]] = [:]
        var asked = ""
    }

    private let state = Mutex(State())

    func plan(for head: RequestHead) -> RequestPlan {
        RequestPlan(bodySizeMax: .mebibytes(1)) { await self.answer(to: $0) }
    }

    /// Begins anew.
    ///
    /// - Parameter answers: by method and target, or method and path. An answer is a body, behind a
    ///   status where that is not 200. The last one of a list is repeated.
    func play(_ answers: [String: [String]]) {
        self.state.withLock { $0 = State(answers: answers) }
    }

    /// The requests since ``play(_:)``, each on a line with its body.
    var asked: String { self.state.withLock { $0.asked } }

    private func answer(to request: HTTPRequest) async -> HTTPResponse {
        let head = request.head
        let body = (try? await request.body.collect()) ?? []
        let target = head.path + (head.query.map { "?" + $0 } ?? "")
        let line = "\(head.method) \(target) \(String(decoding: body, as: UTF8.self))"
        let answer = self.state.withLock { state -> String in
            state.asked += line.trimmingSuffix { $0 == " " || $0 == "\n" } + "\n"
            for key in ["\(head.method) \(target)", "\(head.method) \(head.path)"] {
                guard let found = state.answers[key], let first = found.first else { continue }
                if found.count > 1 { state.answers[key]?.removeFirst() }
                return first
            }
            return #"404 {"error":{"code":"NOT_FOUND","reason":"not in the script: \#(line)"}}"#
        }
        let digits = answer.prefix { $0.isNumber }
        let status = digits.count == 3 ? Int(digits) ?? 200 : 200
        let text = digits.count == 3 ? answer.dropFirst(4) : answer[...]
        return HTTPResponse(status: status, body: .bytes(Bytes(text.utf8)))
    }
}

extension String {
    fileprivate func trimmingSuffix(while isDropped: (Character) -> Bool) -> String {
        var rest = self[...]
        while let last = rest.last, isDropped(last) { rest.removeLast() }
        return String(rest)
    }
}
