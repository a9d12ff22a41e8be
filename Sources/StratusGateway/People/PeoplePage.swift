import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// A page for people: its frame, its language, the look of the app that it stands for, and the parts
/// that pages share. Everything that somebody typed is escaped; nothing is loaded from elsewhere.
///
/// A page works without its script, whose only work is to hand a token over.
struct PeoplePage {
    /// Names the only style and the only script that the browser may use.
    let nonce: String
    var text: PeopleText = .english
    /// Whether the page's address named the language: then its forms and links name it too.
    var keepsLanguage = false
    /// The page's own address without the language. Nil: it cannot be opened again.
    var here: String?
    /// The app for which the page stands.
    var app: App?

    /// An app as its people see it.
    struct App {
        /// Never branded: who asks for a password says who it is.
        let container: ContainerReference
        let server: String
        var brand: Brand?
        var identifier: String { self.container.container }
        var name: String { self.brand?.name ?? self.identifier }
    }

    init(nonce: String) { self.nonce = nonce }

    /// A page at a path, in the language of whoever asks for it.
    init(nonce: String, at path: String, _ head: RequestHead) {
        self.init(nonce: nonce)
        let query = URLQuery(head.query)
        self.choose(query?["lang"], head)
        guard head.method != "POST" else { return }
        let rest = (query?.items ?? []).filter { $0.name != "lang" }
            .map { "\(PercentCoding.encode($0.name))=\(PercentCoding.encode($0.value))&" }
        self.here = path + "?" + rest.joined()
    }

    mutating func choose(_ language: String?, _ head: RequestHead) {
        self.text = .chosen(language, accepted: head.headers["Accept-Language"])
        self.keepsLanguage = language.flatMap(PeopleText.named) != nil
    }

    // MARK: Frame

    func page(_ status: Int, title: String, _ content: String) -> HTTPResponse {
        let text = """
            <!DOCTYPE html>
            <html lang="\(self.text.language)"><head><meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(Self.escape(title))</title>
            <style nonce="\(self.nonce)">\(self.colours)\(Self.style)</style></head>
            <body><main>\(self.brandHead)<h1>\(Self.escape(title))</h1>
            \(content)
            </main>\(self.foot)</body></html>

            """
        return HTTPResponse(
            status: status,
            headers: [
                "Content-Type": "text/html; charset=utf-8",
                "Content-Language": self.text.language,
                "Cache-Control": "no-store",
                // Where a form's answer leads is not limited: an app's address may be anything.
                "Content-Security-Policy":
                    "default-src 'none'; style-src 'nonce-\(self.nonce)'; "
                    + "script-src 'nonce-\(self.nonce)'; img-src 'self'; base-uri 'none'; "
                    + "frame-ancestors 'none'",
                "X-Frame-Options": "DENY",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "same-origin",
            ], body: .bytes(Bytes(text.utf8)))
    }

    private var colours: String {
        let shades = BrandColours(self.app?.brand?.colour ?? .standard)
        return ":root{--accent:\(shades.onLight.text);--on:\(shades.onLight.textOnIt.text)}"
            + "@media (prefers-color-scheme:dark){:root{--accent:\(shades.onDark.text);"
            + "--on:\(shades.onDark.textOnIt.text)}}"
    }

    private var brandHead: String {
        guard let app = self.app, let brand = app.brand else { return "" }
        let logo = brand.logo.map {
            "<img src=\"\(BrandLogo.path(of: $0, in: app.container))\" alt=\"\" "
                + "width=\"64\" height=\"64\">"
        }
        let welcome = brand.welcome.isEmpty ? "" : "<p>\(Self.name(brand.welcome))</p>"
        return
            "<header>\(logo ?? "")<p class=\"app\">\(Self.name(brand.name))</p>\(welcome)</header>"
    }

    private var foot: String {
        var lines: [String] = []
        if let app {
            lines.append(self.fill(self.text.page.appAtServer, [app.identifier, app.server]))
        }
        if let brand = self.app?.brand {
            let links = [
                (self.text.page.privacy, brand.privacy), (self.text.page.terms, brand.terms),
                (self.text.page.help, brand.help),
            ].filter { !$0.1.isEmpty }.map {
                "<a href=\"\(Self.escape($0.1))\" rel=\"noreferrer\">\(Self.escape($0.0))</a>"
            }
            if !links.isEmpty { lines.append(links.joined(separator: " · ")) }
        }
        if let here {
            let links = PeopleText.all.filter { $0.language != self.text.language }.map {
                "<a href=\"\(Self.escape(here))lang=\($0.language)\" hreflang=\"\($0.language)\" "
                    + "lang=\"\($0.language)\">\(Self.escape($0.ownName))</a>"
            }
            lines.append(links.joined(separator: " · "))
        }
        if lines.isEmpty { return "" }
        return "<footer>" + lines.map { "<p>\($0)</p>" }.joined() + "</footer>"
    }

    /// Colours are the app's where it has some; every pair of them keeps a ratio of 4.5.
    static let style = """
        body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:2rem auto;padding:0 1rem;\
        color:#1a1a1a;background:#fff;overflow-wrap:anywhere}
        header{margin-bottom:1.5rem}header img{display:block;border-radius:.8rem}
        header p{margin:.3rem 0}.app{font-weight:600}
        h1{font-size:1.4rem;margin:0 0 .5rem}h2{font-size:1.1rem}
        label{display:block;margin:.8rem 0}
        label.check{display:flex;gap:.6rem;align-items:baseline}
        input:not([type=checkbox]),select{display:block;width:100%;box-sizing:border-box;font:inherit;\
        min-height:44px;padding:.5rem;border:1px solid #767676;border-radius:.4rem}
        input[aria-invalid]{border:2px solid #b3261e}
        input[type=checkbox]{accent-color:var(--accent);width:1.1rem;height:1.1rem;flex:none}
        button{font:inherit;min-height:44px;padding:.5rem 1.2rem;border:0;border-radius:.4rem;\
        background:var(--accent);color:var(--on);width:100%;margin-top:.5rem;cursor:pointer}
        :focus-visible{outline:3px solid var(--accent);outline-offset:2px}
        .problem{border-left:4px solid #b3261e;padding:.3rem .8rem;background:#fdecea}
        a{color:var(--accent)}summary{cursor:pointer}hr{border:0;border-top:1px solid #999}
        button.away{background:none;color:#b3261e;border:1px solid}
        footer{max-width:26rem;margin:3rem auto 1rem;font-size:.85rem;color:#595959}\
        footer p{margin:.2rem 0}
        @media (prefers-color-scheme:dark){body{color:#eee;background:#161616}\
        input:not([type=checkbox]),select{background:#222;color:#eee;border-color:#999}\
        input[aria-invalid]{border-color:#f2b8b5}\
        .problem{background:#3b1512}button.away{color:#f2b8b5}footer{color:#b0b0b0}}

        """

    // MARK: Parts

    func message(_ status: Int, _ text: String) -> HTTPResponse {
        self.page(
            status, title: status < 400 ? self.text.page.done : self.text.page.failed,
            "<p role=\"\(status < 400 ? "status" : "alert")\">\(Self.escape(text))</p>")
    }

    func problem(_ text: String?) -> String {
        guard let text else { return "" }
        return "<p class=\"problem\" role=\"alert\" id=\"problem\">\(Self.escape(text))</p>"
    }

    /// The beginning of a form. What it sends names the language where the page's address did.
    func form(_ action: String) -> String {
        "<form method=\"post\" action=\"\(action)\" autocomplete=\"on\">"
            + (self.keepsLanguage ? Self.hidden("lang", self.text.language) : "")
    }

    func button(_ label: String) -> String {
        "<button type=\"submit\">\(Self.escape(label))</button>"
    }

    func check(_ name: String, _ label: String, isSet: Bool = false) -> String {
        "<label class=\"check\"><input type=\"checkbox\" name=\"\(name)\" value=\"1\""
            + "\(isSet ? " checked" : "")> \(Self.escape(label))</label>"
    }

    /// A path of this server, with the language where the page's address named it.
    ///
    /// - Parameter query: escaped for HTML already.
    func path(_ path: String, _ query: String = "") -> String {
        let parts = [query, self.keepsLanguage ? "lang=\(self.text.language)" : ""]
            .filter { !$0.isEmpty }
        return parts.isEmpty ? path : path + "?" + parts.joined(separator: "&amp;")
    }

    func emailField(_ value: String, isWrong: Bool = false) -> String {
        "<label>\(Self.escape(self.text.signIn.email))<input type=\"email\" name=\"email\" required "
            + "maxlength=\"254\" autocomplete=\"username\" value=\"\(Self.escape(value))\""
            + "\(Self.mark(isWrong))></label>"
    }

    func passwordField(_ name: String, _ label: String, _ purpose: String, isWrong: Bool = false)
        -> String
    {
        "<label>\(Self.escape(label))<input type=\"password\" name=\"\(name)\" required "
            + "maxlength=\"256\" autocomplete=\"\(purpose)\"\(Self.mark(isWrong))></label>"
    }

    func textField(_ name: String, _ label: String, _ purpose: String, _ value: String) -> String {
        "<label>\(Self.escape(label))<input name=\"\(name)\" maxlength=\"100\" "
            + "autocomplete=\"\(purpose)\" value=\"\(Self.escape(value))\"></label>"
    }

    /// A field that the problem is about is marked, and has the focus.
    private static func mark(_ isWrong: Bool) -> String {
        isWrong ? " aria-invalid=\"true\" aria-describedby=\"problem\" autofocus" : ""
    }

    static func hidden(_ name: String, _ value: String) -> String {
        "<input type=\"hidden\" name=\"\(name)\" value=\"\(self.escape(value))\">"
    }

    // MARK: Escaping

    /// A text whose places are taken by names, each in bold.
    func fill(_ text: String, _ names: [String]) -> String {
        PeopleText.fill(
            Self.escape(text), names.map { "<strong>\(Self.name($0))</strong>" })
    }

    /// What somebody chose: its direction of writing ends with it.
    static func name(_ text: String) -> String { "<bdi>\(self.escape(text))</bdi>" }

    static func escape(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Inside a script's string: what could end the string or the script is written as an escape.
    static func scriptText(_ text: String) -> String {
        var escaped = ""
        for unit in text.utf16 {
            switch unit {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x3A, 0x5F, 0x2A:
                escaped.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped
    }
}
