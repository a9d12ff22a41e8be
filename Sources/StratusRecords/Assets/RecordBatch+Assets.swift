import StratusModel
import StratusRows

extension RecordBatch {
    /// Puts the identity into every asset that `operation` names. An asset with an identity has
    /// come with a receipt, and must be there as the receipt says. One without must equal an asset
    /// that this field of the record holds already.
    mutating func resolveAssets(
        of operation: inout RecordOperation, _ existing: Record?,
        over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        for index in operation.fields.indices {
            let field = operation.fields[index]
            let held = existing?.value(of: field.name)?.assetReferences ?? []
            switch field.value {
            case .scalar(.asset(let asset)):
                switch try self.resolve(asset, in: field.name, among: held, over: rows) {
                case .failure(let refused): return refused.refusal
                case .success(let found): operation.fields[index].value = .scalar(.asset(found))
                }
            case .list(.asset, let scalars):
                // Before each of many is looked for among as many.
                if scalars.count > AssetEdits.recordCountMax {
                    return RecordRefusal(.tooManyAssets, String(AssetEdits.recordCountMax))
                }
                var list: [Scalar] = []
                list.reserveCapacity(scalars.count)
                for case .asset(let asset) in scalars {
                    switch try self.resolve(asset, in: field.name, among: held, over: rows) {
                    case .failure(let refused): return refused.refusal
                    case .success(let found): list.append(.asset(found))
                    }
                }
                operation.fields[index].value = .list(.asset, list)
            default: break
            }
        }
        return nil
    }

    private struct AssetRefused: Error { let refusal: RecordRefusal }

    private mutating func resolve(
        _ asset: AssetReference, in field: String, among held: [AssetReference],
        over rows: RowView
    ) throws(StoreError) -> Result<AssetReference, AssetRefused> {
        func refused(_ reason: RecordRefusal.Reason) -> Result<AssetReference, AssetRefused> {
            .failure(AssetRefused(refusal: RecordRefusal(reason, field)))
        }
        guard let identity = asset.asset else {
            let known = held.first {
                $0.asset != nil && $0.fileChecksum == asset.fileChecksum && $0.size == asset.size
            }
            guard let known else { return refused(.assetMismatch) }
            return .success(known)
        }
        guard let row = try self.edit.assets.asset(identity, over: rows),
            row.database == self.edit.database.number
        else { return refused(.assetMissing) }
        guard row.fileChecksum == asset.fileChecksum, Int64(exactly: row.size) == asset.size
        else { return refused(.assetMismatch) }
        // An erasure may have destroyed the key while a receipt was under way.
        if !held.contains(where: { $0.asset == identity }),
            try !AssetRows.opens(row.keyVersion, of: row.database, over: rows)
        {
            return refused(.assetMissing)
        }
        return .success(asset)
    }
}

extension RecordOperation {
    /// The receipts that the operation states, with their assets.
    var receipts: [(asset: AssetID, receipt: UploadID)] {
        self.fields.flatMap { $0.value.assetReferences }.compactMap { asset in
            guard let name = asset.asset, let text = asset.receipt,
                let receipt = UploadID(text: text)
            else { return nil }
            return (name, receipt)
        }
    }

    /// Leaves of every asset what a record stores of it.
    mutating func stripAssets() {
        func stripped(_ scalar: Scalar) -> Scalar {
            guard case .asset(let asset) = scalar else { return scalar }
            return .asset(
                AssetReference(
                    fileChecksum: asset.fileChecksum, size: asset.size, asset: asset.asset))
        }
        for index in self.fields.indices {
            switch self.fields[index].value {
            case .scalar(let scalar): self.fields[index].value = .scalar(stripped(scalar))
            case .list(.asset, let scalars):
                self.fields[index].value = .list(.asset, scalars.map(stripped))
            default: break
            }
        }
    }
}

extension FieldValue {
    var assetReferences: [AssetReference] {
        switch self {
        case .scalar(.asset(let asset)): [asset]
        case .list(.asset, let scalars):
            scalars.compactMap { if case .asset(let asset) = $0 { asset } else { nil } }
        default: []
        }
    }
}
