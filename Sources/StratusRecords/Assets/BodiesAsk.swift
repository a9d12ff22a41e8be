package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the rows of bodies, by their names. For Stratus itself.
package struct BodiesAsk: SingleQuestion, Equatable {
    package static let number: UInt8 = 28
    package static let bound = WorkBound.single(1_000)
    /// Bodies that one question names.
    package static let countMax = 200

    package var bodies: [BodyID] = []

    package init() {}
    package init(_ bodies: [BodyID]) { self.bodies = bodies }

    package var payer: Payer { .stratus }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        // One more than it takes is told so.
        try form.lay(&self.bodies, atMost: Self.countMax + 1)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<FoundBodies, RequestRefusal>
    {
        guard self.bodies.count <= Self.countMax else {
            return .failure(RequestRefusal(.tooManyItems, String(Self.countMax)))
        }
        var (found, chunkCount) = (FoundBodies(), 0 as UInt64)
        for body in self.bodies {
            guard let head = try AssetRows.bodyHead(body, over: view) else {
                found.bodies.append(nil)
                continue
            }
            // Its size is known before its chunks are read.
            chunkCount += head.chunkCount
            if chunkCount > FoundBodies.chunkCountMax, !found.bodies.isEmpty { break }
            found.bodies.append(try AssetRows.body(body, over: view))
            if chunkCount > FoundBodies.chunkCountMax { break }
        }
        return .success(found)
    }
}

/// Bodies as the rows of one partition have them, in the order of the question.
package struct FoundBodies: FormValue, Sendable, Equatable {
    /// Chunks that one answer lists, if it has more than one body.
    package static let chunkCountMax: UInt64 = 20_000

    /// Nil: no row names it. Fewer than were asked for: the others are to be asked for anew.
    package var bodies: [BodyManifest?] = []

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.bodies, atMost: BodiesAsk.countMax)
    }
}
