import StratusCoding
import StratusModel
import StratusRows

extension RowView {
    /// The named bodies from this name on, ascending.
    func bodies(from first: BodyID, limit: Int) throws(StoreError) -> [BodyManifest] {
        var found: [BodyManifest] = []
        var open: (body: BodyID, pages: [Bytes])?
        var fault: DecodingError?
        /// Puts the pages together that were read; false: there is no need for more.
        func close() -> Bool {
            guard let (body, pages) = open else { return true }
            open = nil
            do throws(DecodingError) {
                found.append(try BodyCoding.manifest(of: body, pages: pages))
            } catch {
                fault = error
                return false
            }
            return found.count < limit
        }
        let start = BodyCoding.key(of: first)
        let end = Bytes()
        if limit <= 0 { return [] }
        try self.scan(.body, from: start.span.bytes, to: end.span.bytes, descending: false) {
            key, row in
            do throws(DecodingError) {
                let (body, page) = try BodyCoding.decodeKey(Bytes(copying: key))
                if page == 0 {
                    guard close() else { return .stop }
                    open = (body, [])
                }
                guard open?.body == body else { throw DecodingError(.malformed, at: 0) }
                open?.pages.append(Bytes(copying: row))
                return .next
            } catch {
                fault = error
                return .stop
            }
        }
        if fault == nil, found.count < limit { _ = close() }
        if let fault { throw StoreError(.unreadable, "body: \(fault)") }
        return found
    }
}
