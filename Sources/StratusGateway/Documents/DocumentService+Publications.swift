import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Published links: their owner makes, lists and withdraws them.
extension DocumentService {
    static let publicationOperations = [
        GatewayOperation("publications/make", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).publish($1)
        },
        GatewayOperation("publications/list", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).publications($1)
        },
        GatewayOperation("publications/withdraw", of: .documents, in: .private, needs: .user) {
            try await DocumentService(exchange: $0).withdraw($1)
        },
    ]

    /// What such changes are said to come from.
    private static let publisher = "publisher"
    private static let usualSeconds: Int64 = 7 * 86_400

    func publish(_ input: Input) async throws -> Bytes {
        let kit = try self.kit
        var seconds = Self.usualSeconds
        if let value = input["seconds"] {
            guard let given = value.wholeInt64,
                (1...DocumentPublication.spanMilliseconds / 1_000).contains(given)
            else { throw InputRefusal.unexpectedInput(key: "seconds") }
            seconds = given
        }
        var draws = self.exchange.draws()
        let wanted = DocumentPublication(
            id: draws.documentID(), item: try input.requiredString("id"),
            secret: draws.documentID())
        let result = try await self.change(
            .publish(wanted, milliseconds: seconds * 1_000), &draws)
        guard case .published(let publication) = result else { throw RouteError.otherKind }
        var json = JSONWriter()
        json.object { self.write(publication, kit, to: &$0) }
        return json.finish()
    }

    func publications(_ input: Input) async throws -> Bytes {
        let kit = try self.kit
        let item = try input.string("id")
        guard case .publications(let all) = try await self.ask(.publications) else {
            throw RouteError.otherKind
        }
        let now = self.exchange.kernel.world.wallMilliseconds
        var json = JSONWriter()
        json.object { object in
            let good = all.filter {
                $0.untilMilliseconds > now && (item == nil || item == $0.item)
            }
            object.member("publications", objects: good) { self.write($1, kit, to: &$0) }
        }
        return json.finish()
    }

    func withdraw(_ input: Input) async throws -> Bytes {
        var draws = self.exchange.draws()
        let id = try input.requiredString("publication")
        guard case .removed = try await self.change(.withdraw(id: id), &draws) else {
            throw RouteError.otherKind
        }
        var json = JSONWriter()
        json.object {
            $0.member("publication", id)
            $0.member("withdrawn", true)
        }
        return json.finish()
    }

    private func change(
        _ operation: DocumentOperation, _ draws: inout Draws
    ) async throws -> DocumentResult {
        let results = try await self.submit(
            [operation], device: Self.publisher,
            now: self.exchange.kernel.world.wallMilliseconds, isAtomic: true, &draws)
        guard let result = results.first else { throw RouteError.otherKind }
        if case .refused(let refusal, let subject) = result {
            throw ClientError(refusal, subject: subject)
        }
        return result
    }

    private func write(
        _ publication: DocumentPublication, _ kit: AssetKit, to object: inout JSONWriter
    ) {
        object.member("publication", publication.id)
        object.member("id", publication.item)
        object.member("name", publication.name)
        object.member("size", Int64(clamping: publication.size))
        object.member("contentTag", String(publication.contentTag, radix: 36))
        object.member("until", publication.untilMilliseconds)
        let link = PublishedLink(
            slot: publication.slot, secret: UInt128(publication.secret, radix: 16) ?? 0,
            database: self.exchange.holder.home,
            expiresMilliseconds: publication.untilMilliseconds)
        object.member(
            "url",
            self.exchange.assetOrigin(kit.settings) + PublishedSurface.root
                + link.text(sealedWith: kit.ciphers.links))
    }
}
