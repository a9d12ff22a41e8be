/// The fields of a request's head that concern the connection rather than the resource.
struct HTTPConnectionFields: Sendable {
    let keepsAlive: Bool
    let expectsContinue: Bool

    init(_ headers: HeaderFields, minorVersion: Int) throws(HTTPRefusal) {
        var saysClose = false
        var saysKeepAlive = false
        var expectsContinue = false
        for field in headers.fields {
            switch field.nameCount {
            case 10 where HTTPMessageFraming.isNamed(headers, field, "connection"):
                for option in headers.text[field.value].split(separator: 0x2C) {
                    let name = option.filter { $0 != 0x20 && $0 != 0x09 }.map(ASCII.lowered)
                    if name.elementsEqual("close".utf8) { saysClose = true }
                    if name.elementsEqual("keep-alive".utf8) { saysKeepAlive = true }
                }
            case 6 where HTTPMessageFraming.isNamed(headers, field, "expect"):
                let value = headers.text[field.value].map(ASCII.lowered)
                guard value.elementsEqual("100-continue".utf8) else { throw .expectation }
                // HTTP/1.0 clients cannot know the interim answer (RFC 9110 §10.1.1).
                expectsContinue = minorVersion == 1
            case 16 where HTTPMessageFraming.isNamed(headers, field, "content-encoding"):
                let value = headers.text[field.value].map(ASCII.lowered)
                guard value.isEmpty || value.elementsEqual("identity".utf8) else {
                    throw .contentCoding
                }
            default: break
            }
        }
        self.keepsAlive = !saysClose && (minorVersion == 1 || saysKeepAlive)
        self.expectsContinue = expectsContinue
    }
}
