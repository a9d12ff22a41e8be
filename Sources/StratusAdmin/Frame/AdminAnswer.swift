import StratusAdminModel
import StratusHTTP
import StratusModel
import StratusRuntime

/// How the administrators' API answers: JSON, and one form for everything that went wrong.
enum AdminAnswer {
    static func json(_ answer: some NamedMembers, status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
            body: .bytes(answer.json))
    }

    /// JSON lines, made while they are sent. Where they end by an error, the last one says so.
    static func lines(_ body: any ResponseBody) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: ["Content-Type": "application/jsonl", "Cache-Control": "no-store"],
            body: .stream(EndedLines(body), length: nil))
    }

    static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: ["Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"],
            body: .bytes(Bytes(text.utf8)))
    }

    /// `{"error":{"code":"NOT_FOUND","reason":"…"}}`. The code is for scripts, the reason for
    /// people.
    static func error(_ status: Int, _ code: AdminCode, _ reason: String) -> HTTPResponse {
        Self.json(ErrorAnswer(code, reason), status: status)
    }
}
