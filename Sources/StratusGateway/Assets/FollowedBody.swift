import StratusAssets
import StratusModel
import StratusRecords
import StratusRuntime

/// The bytes of a part of a file. A rotation of keys may put a new body in the place of the one
/// that is read, and then the old one's copies go: the file is looked up once more, and reading goes
/// on with the next byte. The plain bytes are the same.
actor FollowedBody: ResponseBody {
    /// New bodies that one reader goes on with: each is a whole rotation.
    private static let followCountMax = 3

    private let handler: AssetSurface
    private let end: UInt64
    private let deadline: MonotonicTime
    private let share: TransferBuffers.Share
    private var stored: StoredAsset
    /// The next byte.
    private var offset: UInt64
    private var body: (any ResponseBody)?
    private var followCount = 0

    init(
        of stored: StoredAsset, _ range: Range<UInt64>, in handler: AssetSurface,
        until deadline: MonotonicTime, _ share: TransferBuffers.Share
    ) {
        self.stored = stored
        self.offset = range.lowerBound
        self.end = range.upperBound
        self.handler = handler
        self.deadline = deadline
        self.share = share
    }

    /// Returns once the next bytes are there.
    func begin() async throws {
        while true {
            let failure: BodyBeginning.Failure
            switch try await self.handler.reading(
                self.stored, self.offset..<self.end, until: self.deadline, self.share)
            {
            case .ready(let body):
                self.body = body
                return
            case .failed(let reason): failure = reason
            }
            if try await self.follow() { continue }
            switch failure {
            case .unreachable:
                throw AssetFailure.later(
                    "a node that may have the file does not answer", seconds: 5)
            case .absent: throw AssetFailure.gone("no node has all of the file")
            }
        }
    }

    /// Looks the file up again.
    ///
    /// - Returns: whether it has another body by now.
    private func follow() async throws -> Bool {
        let asset = self.stored.asset
        // Its copies go soon after its row.
        guard let now = try await self.handler.stored(asset, in: self.stored.database) else {
            throw AssetFailure.notFound
        }
        guard now.body.body != self.stored.body.body, now.body.size == self.stored.body.size else {
            return false
        }
        self.followCount += 1
        guard self.followCount <= Self.followCountMax else {
            throw AssetFailure.later("the file was sealed anew meanwhile", seconds: 1)
        }
        self.stored = now
        return true
    }

    func next() async throws -> Bytes? {
        while let body = self.body {
            do {
                let bytes = try await body.next()
                self.offset += UInt64(bytes?.count ?? 0)
                return bytes
            } catch let error as BodyReader.Failure {
                self.body = nil
                guard case .absent = error, try await self.follow() else { throw error }
                try await self.begin()
            }
        }
        return nil
    }
}
