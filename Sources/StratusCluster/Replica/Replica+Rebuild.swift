package import StratusModel
import StratusStorage

/// A file that is made anew after an erasure, a slice at a time, each in a turn of its own.
///
/// Nothing of consensus notices: the rows are the same at the same entry. Meanwhile the log lets go
/// of nothing, because the new file follows by its entries.
extension Replica {
    package var isRebuilding: Bool { self.rebuilding != nil }

    /// Whether nothing else works on the file, and the rows are in order.
    private var mayRebuild: Bool {
        self.rebuilding == nil && !self.isSpooling && !self.isChecking && !self.isInstalling
            && self.isStateWell && self.newer == nil && !self.hasWrongRows
            && self.rottenAlone == nil
    }

    /// Begins to make the file anew, if nothing speaks against it now.
    package func rebuild(at now: MonotonicTime, into effects: inout [Effect]) {
        guard self.mayRebuild else { return }
        let (log, group, limit) = (self.log, self.group, self.tuning.applySizeMax)
        do throws(StoreError) {
            // A copy of the rows, and the new file.
            let size = try self.state.snapshotSize
            guard self.hasRoom(for: ByteCount(size.raw * 2)) else {
                throw StoreError(
                    .full,
                    "it needs \(size.raw >> 19) MiB on this disk, and there is less beside 'storage.reserve'"
                )
            }
            self.rebuilding = try self.state.rebuild { (from) throws(StoreError) in
                do throws(LogError) { return try log.read(group, from: from, limit: limit) } catch {
                    throw StoreError(.io, "the log cannot be read: \(error.text)")
                }
            }
        } catch { return effects.append(.rebuildFailed(error)) }
        self.requestTurn(at: now, into: &effects)
    }

    func advance(
        _ work: any RebuildWork, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        // An error of the state comes first: the file may be another one afterwards.
        guard self.isStateWell else { return self.rebuilding = nil }
        do throws(StoreError) {
            if let size = try work.advance() {
                if !work.isUrgent { self.pace?.spend(size, at: now) }
                return
            }
            self.rebuilding = nil
            effects.append(.fileRebuilt)
        } catch {
            self.rebuilding = nil
            effects.append(.rebuildFailed(error))
            if error.kind == .corrupt { self.foundRotten(error, at: now, into: &effects) }
        }
    }
}
