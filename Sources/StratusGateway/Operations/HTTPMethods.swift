/// The methods that an operation takes.
package struct HTTPMethods: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let get = HTTPMethods(rawValue: 1)
    package static let post = HTTPMethods(rawValue: 2)
    package static let put = HTTPMethods(rawValue: 4)
    package static let delete = HTTPMethods(rawValue: 8)

    package func contains(named method: String) -> Bool {
        switch method {
        case "POST": self.contains(.post)
        case "GET": self.contains(.get)
        case "PUT": self.contains(.put)
        case "DELETE": self.contains(.delete)
        default: false
        }
    }
}
