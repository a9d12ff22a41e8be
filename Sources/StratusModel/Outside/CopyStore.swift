/// One partition's copies on this node's disk. Called only from a thread that may block.
package protocol CopyStore: AnyObject {
    /// Stores copies durably, with one sync for all before this returns. A name that is already
    /// there is left unchanged.
    ///
    /// Takes at most ``CopyRound/sizeMax`` bytes a call. After a throw none of `copies` counts as
    /// stored.
    ///
    /// - Returns: those that were there before, as they are.
    @discardableResult
    func put(_ copies: [StoredCopy]) throws(StoreError) -> [HeldCopy]
    /// The stored bytes, or nil if they are not here. A copy that differs from what was written is
    /// forgotten, and missing from then on.
    func copy(_ name: CopyName) throws(StoreError) -> Bytes?
    /// Up to `limit` copies from `name` on, ascending.
    func held(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy]
    /// The same of copies that were found damaged. They count as missing, and their places are kept
    /// until they are removed or stored again.
    func damaged(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy]
    /// Forgets copies; compaction gives their room back later. Absent ones are no error.
    func remove(_ names: [CopyName]) throws(StoreError)
    /// Does a slice of compacting or of reading back, of about `budget` bytes.
    func advance(_ work: PackWork, _ budget: ByteCount) throws(StoreError) -> PackProgress
    /// Ends the file that copies are appended to, so that its room can be had back. To be called
    /// when no upload has come for a while.
    func seal() throws(StoreError)
    /// The bytes of its files, and how many of them hold copies that were not removed.
    func sizes() throws(StoreError) -> (all: ByteCount, live: ByteCount)
    /// Copies found damaged since the last call, by whichever call found them; ascending.
    func takeForgotten() -> [CopyName]
    /// Whether the store began anew since the last call, over what its files still say: copies may
    /// be gone that nobody was told of.
    func takeBegunAnew() -> Bool
}

/// How much is stored between two syncs.
package enum CopyRound {
    package static let sizeMax = ByteCount.mebibytes(4)
}

/// A kind of background work of a store, apart from requests.
package enum PackWork: Sendable, Hashable, CaseIterable {
    /// Gives back the room of copies that were removed.
    case compact
    /// Reads every copy and checks it.
    case readBack
}

package struct PackProgress: Sendable, Hashable {
    /// Bytes read and written.
    package var size: ByteCount
    /// Whether nothing is left to do for now: nothing to compact, or every pack has been read.
    package var isDone: Bool

    package init(size: ByteCount, isDone: Bool) {
        self.size = size
        self.isDone = isDone
    }
}
