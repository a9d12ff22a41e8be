package import StratusHTTP
import StratusModel
package import StratusRuntime

/// Every surface that clients reach, found by the path of a request.
package struct SurfaceTable: Sendable {
    private struct Row: Sendable {
        let root: Bytes
        let isWhole: Bool
        let surface: any Surface
        let plan: @Sendable (RequestHead) -> RequestPlan

        func holds(_ path: Span<UInt8>) -> Bool {
            guard self.isWhole ? path.count == self.root.count : path.count >= self.root.count
            else { return false }
            for place in self.root.indices where path[place] != self.root[place] { return false }
            return true
        }
    }

    /// The longest roots first: of two that fit, the longer one is meant.
    private let rows: [Row]
    private let nowhere: @Sendable (RequestHead) -> RequestPlan

    /// - Parameter nowhere: answers paths that are no surface's; may be one of them.
    package init(_ surfaces: [any Surface], nowhere: any Surface) {
        let roots = surfaces.flatMap(\.roots)
        if let root = Self.repeated(roots) { preconditionFailure("\(root) is of two surfaces") }
        var rows: [Row] = []
        for surface in surfaces {
            let plan = Self.planning(surface)
            rows += surface.roots.map {
                Row(
                    root: Bytes($0.text.utf8), isWhole: $0.isWhole, surface: surface, plan: plan)
            }
        }
        self.rows = rows.sorted { $0.root.count > $1.root.count }
        self.nowhere = Self.planning(nowhere)
    }

    /// A root that stands in the list more than once.
    package static func repeated(_ roots: [SurfaceRoot]) -> String? {
        var texts: Set<String> = []
        return roots.first { !texts.insert($0.text).inserted }?.text
    }

    package func plan(for head: RequestHead) -> RequestPlan {
        // Every request comes by here: bytes, not characters.
        let path = head.path.utf8Span.span
        for row in self.rows where row.holds(path) { return row.plan(head) }
        return self.nowhere(head)
    }

    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep {
        let path = bytes.extracting(view.path)
        for row in self.rows where row.holds(path) {
            return row.surface.answer(view, bytes, call, into: &answer)
        }
        return .plan
    }

    private static func planning(
        _ surface: some Surface
    ) -> @Sendable (RequestHead) -> RequestPlan {
        { head in
            let plan = surface.plan(head)
            return RequestPlan(
                plan.route, bodySizeMax: plan.bodySizeMax, patience: plan.patience
            ) { await surface.respond(TaskRequest($0, plan)) }
        }
    }
}
