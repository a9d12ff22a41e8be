import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

extension JSONWriter {
    /// A live record, or its error where a field that the client wants was to be opened and did
    /// not open.
    mutating func writeRead(
        _ record: Record, _ shape: AnswerShape, _ links: AssetLinks?, _ opened: OpenedFields,
        _ shares: ShownShares = .none
    ) {
        if let error = ClientError(of: record, shape, opened, wasSaved: false) {
            self.writeFailure(error, recordName: record.name)
        } else if shares.isGone(record) {
            self.writeFailure(ClientError(RecordRefusal(.notFound)), recordName: record.name)
        } else {
            self.writeRecord(record, shape, links, opened, shares)
        }
    }

    /// A live record, complete but for the fields the client does not want.
    ///
    /// - Parameters:
    ///   - links: makes the download links of its assets; nil: it gets none.
    ///   - opened: the values of its encrypted fields. One that is not there is left out.
    ///   - shares: what is shown of shares.
    mutating func writeRecord(
        _ record: Record, _ shape: AnswerShape, _ links: AssetLinks?, _ opened: OpenedFields,
        _ shares: ShownShares = .none
    ) {
        // Beginnings and ends instead of closures, which cost a hundred instructions for each
        // object: a record has nine of them.
        self.beginObject()
        self.member(known: "recordName", record.name)
        self.member(known: "recordType", record.type)
        self.key(known: "fields")
        self.beginObject()
        for field in record.fields where shape.wants(field.name) {
            if let value = opened.value(of: field) {
                self.writeOpened(value, of: field, shape)
            } else {
                self.writeField(field, shape, links, of: record)
            }
        }
        self.endObject()
        self.key(known: "pluginFields")
        self.beginObject()
        self.endObject()
        self.key(known: "recordChangeTag")
        self.write(base36: record.tag.raw)
        self.key(known: "created")
        let start = self.count
        self.writeStamp(record.created)
        let end = self.count
        self.key(known: "modified")
        if record.modified == record.created {
            self.write(again: start..<end)
        } else {
            self.writeStamp(record.modified)
        }
        self.member(known: "deleted", false)
        self.key(known: "zoneID")
        self.writeZoneID(record.zone)
        if let parent = record.parent {
            self.key(known: "parent")
            self.writeRecordID(parent, in: record.zone)
        }
        if let share = record.share {
            self.key(known: "share")
            self.writeRecordID(share, in: record.zone)
        }
        if let shortGUID = record.shortGUID { self.member(known: "shortGUID", shortGUID) }
        if let detail = shares.detail(of: record) {
            if record.shortGUID == nil { self.member("shortGUID", detail.link.text) }
            self.writeShareMembers(of: detail, receivesNames: shares.receivesNames)
        }
        self.endObject()
    }

    /// A deletion in a feed.
    mutating func writeTombstone(_ name: String, tag: ChangeTag, in zone: ZoneID) {
        self.object {
            $0.member(known: "recordName", name)
            $0.key(known: "recordType")
            $0.writeNull()
            $0.member(known: "deleted", true)
            $0.member(known: "recordChangeTag", tag.text)
            $0.key(known: "zoneID")
            $0.writeZoneID(zone)
        }
    }

    private mutating func writeRecordID(_ name: String, in zone: ZoneID) {
        self.object {
            $0.member(known: "recordName", name)
            $0.key(known: "zoneID")
            $0.writeZoneID(zone)
        }
    }

    /// Always all three: clients discard the block where one is missing.
    private mutating func writeStamp(_ stamp: ChangeStamp) {
        self.beginObject()
        self.member(known: "timestamp", stamp.milliseconds)
        self.member(known: "userRecordName", stamp.userRecordName)
        self.member(known: "deviceID", stamp.deviceID)
        self.endObject()
    }

    /// A field as key and dictionary; always with its type, clients drop values without.
    private mutating func writeField(
        _ field: Field, _ shape: AnswerShape, _ links: AssetLinks?, of record: Record?
    ) {
        switch field.value {
        case .scalar(.asset(let asset)):
            self.key(field.name)
            self.object {
                $0.key(known: "value")
                $0.writeAsset(asset, links, of: record)
                $0.member(known: "type", TypeTag.text(of: FieldType(.asset)))
            }
        case .list(.asset, let scalars):
            self.key(field.name)
            self.object {
                $0.key(known: "value")
                $0.array { list in
                    for case .asset(let asset) in scalars {
                        list.writeAsset(asset, links, of: record)
                    }
                }
                $0.member(known: "type", TypeTag.text(of: FieldType(.asset, isList: true)))
            }
        case .scalar(let scalar):
            self.key(field.name)
            self.beginObject()
            self.key(known: "value")
            self.writeScalar(scalar, shape)
            self.member(known: "type", TypeTag.text(of: FieldType(scalar.type)))
            self.endObject()
        case .list(let element, let scalars):
            self.key(field.name)
            self.object {
                $0.key(known: "value")
                $0.array { list in for scalar in scalars { list.writeScalar(scalar, shape) } }
                $0.member(known: "type", TypeTag.text(of: FieldType(element, isList: true)))
            }
        case .sealed:
            // Whoever answers without keys answers without what is sealed.
            break
        }
    }

    /// An encrypted field, in plain text.
    private mutating func writeOpened(_ value: FieldValue, of field: Field, _ shape: AnswerShape) {
        self.key(field.name)
        self.object {
            $0.key(known: "value")
            switch value {
            case .scalar(let scalar): $0.writeScalar(scalar, shape)
            case .list(_, let scalars):
                $0.array { list in for scalar in scalars { list.writeScalar(scalar, shape) } }
            case .sealed: $0.writeNull()
            }
            $0.member(known: "type", TypeTag.text(of: field.value.type))
            $0.member(known: "isEncrypted", true)
        }
    }

    private mutating func writeScalar(_ scalar: Scalar, _ shape: AnswerShape) {
        switch scalar {
        case .string(let text): self.write(text)
        case .int64(let number), .timestamp(let number):
            if shape.numbersAsStrings { self.write(String(number)) } else { self.write(number) }
        case .double(let number):
            if shape.numbersAsStrings {
                self.write(number.description)
            } else {
                self.write(number)
            }
        case .bytes(let bytes): self.write(base64: bytes)
        case .location(let location): self.writeLocation(location)
        case .reference(let reference): self.writeReference(reference)
        case .asset(let asset): self.writeAsset(asset, nil, of: nil)
        }
    }

    /// Without a receipt: whoever saves what was read sends it back as it is.
    private mutating func writeAsset(
        _ asset: AssetReference, _ links: AssetLinks?, of record: Record?
    ) {
        self.object {
            $0.member(known: "fileChecksum", asset.fileChecksum)
            $0.member(known: "size", asset.size)
            if let links, let record, let name = asset.asset {
                $0.member(known: "downloadURL", links.url(of: name, in: record))
                $0.writeOpaque(of: asset.fileChecksum)
            }
        }
    }

    /// Exactly the keys that were stored.
    private mutating func writeLocation(_ location: Location) {
        self.object {
            $0.member(known: "latitude", location.latitude)
            $0.member(known: "longitude", location.longitude)
            for (key, part) in FieldReader.locationParts {
                if let number = location[keyPath: part] { $0.member(key, number) }
            }
            if let timestamp = location.timestamp { $0.member(known: "timestamp", timestamp) }
        }
    }

    private mutating func writeReference(_ reference: Reference) {
        self.object {
            $0.member(known: "recordName", reference.recordName)
            switch reference.action {
            case .none: $0.member(known: "action", "NONE")
            case .deleteSelf: $0.member(known: "action", "DELETE_SELF")
            case .validate: $0.member(known: "action", "VALIDATE")
            }
            $0.key(known: "zoneID")
            $0.writeZoneID(reference.zone)
        }
    }
}
