import StratusCluster
import StratusCoding
import StratusIdentity
package import StratusModel
import StratusRecords

/// Copies the public database of one environment into the other, a page at a time.
///
/// Nothing is kept between two pages: whoever asks says where the last one ended. What is there
/// already is left alone. So a copy that was interrupted goes on, and a whole one does nothing.
package struct ContainerCopy: Sendable {
    package struct Page: Sendable, Equatable {
        package var madeCount = 0
        package var thereCount = 0
        package var fileSize: UInt64 = 0
        /// Records that refer to one that is not there yet: the next round may make them.
        package var waiting: [Remark] = []
        package var refused: [Remark] = []
        /// Nil: it was the last.
        package var next: Bytes?
    }

    /// Why a record was not copied.
    package struct Remark: Sendable, Equatable {
        package var record: String
        package var reason: String
    }

    /// Where a page begins: a part of the database, a type, and the marker of its query.
    private struct Place {
        var part = 0
        var type = ""
        var marker: Bytes?

        init() {}

        init?(_ bytes: Bytes) {
            var reader = ByteReader(bytes)
            do throws(DecodingError) {
                self.part = Int(try reader.byte())
                self.type = try reader.text()
                let marker = try reader.prefixed()
                try reader.finish()
                self.marker = marker.isEmpty ? nil : marker
            } catch { return nil }
        }

        var bytes: Bytes {
            var writer = ByteWriter(reserving: 64)
            writer.write(UInt8(self.part))
            writer.write(text: self.type)
            writer.write(prefixed: self.marker ?? [])
            return writer.bytes
        }
    }

    /// Records of one page: each may have files.
    private static let recordCountMax = 50

    private let directory: Directory
    private let copying: any RecordCopying
    private let source: ContainerReference
    private let target: ContainerReference
    private var store: IdentityStore { self.directory.accounts.store }

    package init(
        _ directory: Directory, from source: ContainerReference, to target: ContainerReference,
        by copying: any RecordCopying
    ) {
        self.directory = directory
        self.source = source
        self.target = target
        self.copying = copying
    }

    /// - Parameter after: the last page's `next`; nil: from the beginning.
    /// - Returns: nil: one of the environments is not in use, or `after` is none of ours.
    package func page(after: Bytes?) async throws -> Page? {
        let registry = self.directory.registry
        guard var place = after.map({ Place($0) }) ?? Place(),
            let from = try await registry.descriptor(of: self.source), from.state == .active,
            let to = try await registry.descriptor(of: self.target), to.state == .active
        else { return nil }
        let reader = ArchiveReader(store: self.store)
        // People's own records are made by signing in.
        let types = try await reader.schema(of: self.source).types.map(\.name)
            .filter { $0 != "Users" }.sorted()
        let parts = from.publicDatabase(of: self.source).parts
        var page = Page()
        guard place.part < parts.count else { return page }
        if let type = types.first(where: { $0 >= place.type }) {
            if type != place.type { place.marker = nil }
            let part = parts[place.part]
            let found = try await reader.page(
                of: type, in: part, after: place.marker, limit: Self.recordCountMax)
            try await self.copy(found.records, of: part, layout: to.layout, &page)
            place.marker = found.next
            place.type = found.next == nil ? type + "\u{0}" : type
        } else {
            place.part += 1
            place.type = ""
        }
        if place.part < parts.count { page.next = place.bytes }
        return page
    }

    private func copy(
        _ records: [Record], of part: DatabaseID, layout: ContainerLayout, _ page: inout Page
    ) async throws {
        if records.isEmpty { return }
        var names: [String: String] = [:]
        var wanted = records
        for position in wanted.indices {
            let creator = wanted[position].created.userRecordName
            let name = try await self.name(of: creator, &names)
            wanted[position].created.userRecordName = name
        }
        let copied = try await self.copying.copy(
            wanted, of: part, to: self.target, layout: layout)
        for (record, result) in zip(records, copied) {
            switch result {
            case .made(let size):
                page.madeCount += 1
                page.fileSize += size
            case .there: page.thereCount += 1
            case .waits(let reason):
                page.waiting.append(Remark(record: record.name, reason: reason))
            case .refused(let reason):
                page.refused.append(Remark(record: record.name, reason: reason))
            }
        }
    }

    /// What a creator is called in the other environment. Empty for one who has no account.
    private func name(of creator: String, _ names: inout [String: String]) async throws -> String {
        if let known = names[creator] { return known }
        var name = ""
        if let id = try await self.directory.access.user(creator, in: self.source)?.account,
            let account = try await self.directory.accounts.account(id)
        {
            name = self.store.keys.userRecordName(
                of: id, epoch: account.epoch, in: self.target)
        }
        names[creator] = name
        return name
    }
}
