import StratusModel

/// Which pages of other origins may call us, and what their browsers are told (the Fetch standard,
/// "CORS protocol").
///
/// Credentials in the browser's sense (cookies) are never allowed, so `*` is safe where any origin
/// is welcome; nothing is ever reflected that is not on the list.
package struct CORSPolicy: Sendable, Equatable {
    package enum Origins: Sendable, Equatable {
        case any
        /// `https://app.example.org`, or `https://*.example.org` for every name below that one.
        case listed([String])
    }

    package enum Decision: Sendable, Equatable {
        /// No Origin: not a browser's cross-origin call, and none of this policy's business.
        case sameOrigin
        /// The value for Access-Control-Allow-Origin.
        case allowed(String)
        case refused
    }

    package var origins: Origins
    package var methods: [String]
    package var requestHeaders: [String]
    package var exposedHeaders: [String]
    package var maxAge: Duration

    package init(
        origins: Origins = .any,
        methods: [String] = ["GET", "POST", "PUT", "OPTIONS"],
        requestHeaders: [String] = [
            "content-type", "x-apple-cloudkit-request-keyid",
            "x-apple-cloudkit-request-iso8601date", "x-apple-cloudkit-request-signaturev1",
        ],
        exposedHeaders: [String] = [
            "X-Apple-Request-UUID", "X-Apple-CloudKit-Web-Auth-Token", "X-Responding-Instance",
            "Via",
        ],
        maxAge: Duration = .seconds(3600)
    ) {
        self.origins = origins
        self.methods = methods
        self.requestHeaders = requestHeaders
        self.exposedHeaders = exposedHeaders
        self.maxAge = maxAge
    }

    package func decide(_ headers: HeaderFields) -> Decision {
        let origins = headers.values(of: "origin")
        guard let origin = origins.first else { return .sameOrigin }
        guard origins.count == 1 else { return .refused }
        switch self.origins {
        case .any: return .allowed("*")
        case .listed(let patterns):
            // `null` is every sandboxed page and every file on a disk: never on a list.
            guard Self.isOrigin(origin), patterns.contains(where: { Self.matches(origin, $0) })
            else { return .refused }
            return .allowed(origin)
        }
    }

    /// Whether the request only asks for permission: it is answered with ``preflightHeaders(_:)``
    /// and reaches no handler.
    package static func isPreflight(_ head: RequestHead) -> Bool {
        head.method == "OPTIONS" && head.headers.contains("origin")
            && head.headers.contains("access-control-request-method")
    }

    /// For the 204 to a preflight. A refused origin gets no permission, only `Vary`: its browser
    /// then stops.
    package func preflightHeaders(_ headers: HeaderFields) -> HeaderFields {
        var answer = self.vary
        guard case .allowed(let origin) = self.decide(headers) else { return answer }
        answer.append("access-control-allow-origin", origin)
        answer.append("access-control-allow-methods", self.methods.joined(separator: ","))
        answer.append("access-control-allow-headers", self.requestHeaders.joined(separator: ","))
        answer.append(
            "access-control-max-age", String(self.maxAge.clampedNanoseconds / 1_000_000_000))
        return answer
    }

    /// For every other answer, errors included: a script must be able to read why it failed.
    package func responseHeaders(_ headers: HeaderFields) -> HeaderFields {
        var answer = self.vary
        guard case .allowed(let origin) = self.decide(headers) else { return answer }
        answer.append("access-control-allow-origin", origin)
        if !self.exposedHeaders.isEmpty {
            answer.append(
                "access-control-expose-headers", self.exposedHeaders.joined(separator: ","))
        }
        return answer
    }

    /// An answer that differs by origin must not be served to another one from a cache.
    private var vary: HeaderFields { self.origins == .any ? [:] : ["vary": "Origin"] }

    /// `scheme://host[:port]` and nothing else.
    private static func isOrigin(_ text: String) -> Bool {
        guard let (scheme, host) = Self.parts(text) else { return false }
        return !scheme.isEmpty && scheme.utf8.allSatisfy { ASCII.lowered($0) &- 0x61 < 26 }
            && HTTPHost.isValid(ArraySlice(host.utf8))
    }

    private static func matches(_ origin: String, _ pattern: String) -> Bool {
        if ASCII.equalIgnoringCase(origin, pattern) { return true }
        guard let (scheme, host) = Self.parts(pattern), host.utf8.starts(with: "*.".utf8),
            let (originScheme, originHost) = Self.parts(origin),
            ASCII.equalIgnoringCase(scheme, originScheme)
        else { return false }
        let suffix = host.utf8.dropFirst().map(ASCII.lowered)
        let name = originHost.utf8.map(ASCII.lowered)
        return name.count > suffix.count && name.suffix(suffix.count).elementsEqual(suffix)
    }

    private static func parts(_ origin: String) -> (scheme: String, host: String)? {
        let text = Array(origin.utf8)
        guard let colon = text.firstIndex(of: 0x3A), text.count > colon + 3,
            text[colon + 1] == 0x2F, text[colon + 2] == 0x2F
        else { return nil }
        return (
            String(decoding: text[..<colon], as: UTF8.self),
            String(decoding: text[(colon + 3)...], as: UTF8.self)
        )
    }
}
