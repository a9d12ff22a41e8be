import StratusAdminModel
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
            return ErrorAnswer(.incomplete, Self.reason(of: error)).line
        }
    }

    /// The error itself goes to the log.
    private static func reason(of error: any Error) -> String {
        switch error {
        case RouteError.refused(let why), RouteError.unreadable(let why):
            "the lines before are not all: \(why)"
        default: "the lines before are not all: the node failed, and its log says why"
        }
    }
}
