import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// What is in a folder, written page by page as the client takes it.
actor DAVListing: ResponseBody {
    private static let pageMax = 200
    /// Items that are written at once: each may have properties and locks of many bytes.
    private static let chunkMax = ListingTurn.itemCountMax

    private let service: DAVService
    private let folder: DocumentItem
    private var opening: Bytes
    private let closing: Bytes
    private let write: @Sendable ([DocumentItem]) async throws -> Bytes
    /// Where the next page begins; nil: at the first name.
    private var after: Bytes?
    private var isOver = false
    /// Read, and not yet written.
    private var waiting: ArraySlice<DocumentItem> = []
    private var isClosed = false

    init(
        _ service: DAVService, _ folder: DocumentItem, members: [DocumentItem]?, opening: Bytes,
        closing: Bytes,
        write: @escaping @Sendable ([DocumentItem]) async throws -> Bytes
    ) {
        self.service = service
        self.folder = folder
        self.opening = opening
        self.closing = closing
        self.write = write
        if let members {
            self.waiting = members[...]
            self.isOver = true
        }
    }

    func next() async throws -> Bytes? {
        if !self.opening.isEmpty {
            defer { self.opening = [] }
            return self.opening
        }
        while !self.isOver || !self.waiting.isEmpty {
            if !self.waiting.isEmpty {
                let chunk = Array(self.waiting.prefix(Self.chunkMax))
                self.waiting = self.waiting.dropFirst(chunk.count)
                let bytes = try await self.write(chunk)
                if !bytes.isEmpty { return bytes }
                continue
            }
            guard
                case .list(let items, let next) = try await self.service.documents.ask(
                    .list(folder: self.folder.id, after: self.after, limit: Self.pageMax),
                    until: self.service.pageDeadline)
            else { throw RouteError.otherKind }
            self.after = next
            // A folder that was removed meanwhile has nothing more.
            self.isOver = items == nil || next == nil
            var shown = items ?? []
            if !self.service.showsAll, self.folder.id == DocumentNames.root {
                shown = shown.filter { $0.id == DocumentNames.documents }
                self.isOver = true
            }
            self.waiting = shown[...]
        }
        if self.isClosed { return nil }
        self.isClosed = true
        return self.closing
    }
}
