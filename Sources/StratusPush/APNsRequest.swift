package import StratusHTTP
package import StratusModel

/// One push as APNs takes it: the path and the fields of its request. The body is the payload.
package struct APNsRequest: Sendable, Equatable {
    package enum Problem: Error, Sendable, Equatable {
        case deviceToken, topic, collapseIdentifier, payloadTooLarge, payloadEmpty
    }

    package static let payloadSizeMax = 4_096
    package static let collapseSizeMax = 64

    package enum Kind: String, Sendable {
        case alert
        case background
    }

    /// The token as the device gave it.
    package var deviceToken: Bytes
    /// The app's bundle identifier.
    package var topic: String
    package var kind: Kind
    /// Lower case; equal for every repeat of this push (P-02).
    package var identifier: String
    package var collapseIdentifier: String?
    /// Seconds since 1970; 0: tried once and not kept.
    package var expiration: Int64
    package var payload: Bytes

    package init(
        deviceToken: Bytes, topic: String, kind: Kind, identifier: String,
        collapseIdentifier: String? = nil, expiration: Int64 = 0, payload: Bytes
    ) throws(Problem) {
        guard (1...100).contains(deviceToken.count) else { throw .deviceToken }
        guard !topic.isEmpty, topic.utf8.count <= 255,
            topic.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .topic }
        if let collapseIdentifier {
            guard (1...Self.collapseSizeMax).contains(collapseIdentifier.utf8.count),
                collapseIdentifier.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F })
            else { throw .collapseIdentifier }
        }
        guard !payload.isEmpty else { throw .payloadEmpty }
        guard payload.count <= Self.payloadSizeMax else { throw .payloadTooLarge }
        self.deviceToken = deviceToken
        self.topic = topic
        self.kind = kind
        self.identifier = identifier
        self.collapseIdentifier = collapseIdentifier
        self.expiration = expiration
        self.payload = payload
    }

    package var target: String {
        let digits = self.deviceToken.flatMap { [Self.digit($0 >> 4), Self.digit($0 & 15)] }
        return "/3/device/" + String(decoding: digits, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    package func headers(_ token: ProviderToken) -> HeaderFields {
        var headers: HeaderFields = [
            "authorization": token.header, "apns-topic": self.topic,
            "apns-push-type": self.kind.rawValue,
            "apns-priority": self.kind == .alert ? "10" : "5",
            "apns-expiration": "\(self.expiration)", "apns-id": self.identifier,
            "content-type": "application/json",
        ]
        if let collapse = self.collapseIdentifier { headers.append("apns-collapse-id", collapse) }
        return headers
    }
}
