import StratusCluster
import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization

/// Lines of which the last says `error` where the others end by one, so that whoever kept them
/// later sees that they are not all.
///
/// The error follows, so that the log tells of it and the connection is cut: a part must not be
/// taken for the whole.
final class EndedLines: ResponseBody {
    private let inner: any ResponseBody
    private let fault = Mutex<(any Error)?>(nil)

    init(_ inner: any ResponseBody) { self.inner = inner }

    func next() async throws -> Bytes? {
        if let fault = self.fault.withLock({ $0 }) { throw fault }
        do { return try await self.inner.next() } catch {
            self.fault.withLock { $0 = error }
            return JSONWriter.line {
                $0.key("error")
                $0.object {
                    $0.member("code", "INCOMPLETE")
                    $0.member("reason", Self.reason(of: error))
                }
            }
        }
    }

    private static func reason(of error: any Error) -> String {
        if case RouteError.refused(let why) = error {
            return "the lines before are not all: \(why)"
        }
        return "the lines before are not all: \(error)"
    }
}
