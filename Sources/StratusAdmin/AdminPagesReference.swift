import StratusAdminModel

/// The reference page of the administrators' API, made from ``AdminRoute/all``.
package enum AdminPagesReference {
    package static func page() -> String {
        var text = """
            # The administrators' API

            This page is made from the table that the node answers by (`AdminRoute.all`). A test compares the two.
            `stratusctl` is a client of this API, and [administration.md](../internals/administration.md) describes it.

            - The API has a listener of its own, `admin.listen`. An administrator sends `Authorization: Bearer TOKEN`, with the text in the
              file `admin.token` of the data directory, or a client certificate of `admin.tls.clientAuthorityFile`.
            - "anyone" needs neither. "scraper" needs neither where `admin.openMetrics` is set.
            - Bodies and answers are JSON if nothing else is said. A word with `=` is part of the query.
            - An error is `{"error":{"code":"…","reason":"…"}}`: a code for scripts, of the list below, and a reason for people.
            - A member of a body that is of another kind is refused with 400. Members that are not known are ignored.
            - An answer of JSON lines that cannot go on has an error as its last line, and the connection is cut.
            - Whoever may GET a page may also ask for its HEAD. `POST` of one piece is repeated until the answer says `isDone`.


            """
        var section = ""
        for route in AdminRoute.all {
            let next = Self.section(of: route)
            if next != section {
                text += section.isEmpty ? "" : "\n"
                text +=
                    "## \(next)\n\n| Request | Who | Body | Answer |\n| --- | --- | --- | --- |\n"
                section = next
            }
            let body = route.body.isEmpty ? "–" : route.body
            text +=
                "| `\(route.method) \(route.template)` | \(route.role.rawValue) | \(body) | \(route.answer) |\n"
        }
        text += "\n## Codes of errors\n\n| Code | What it means |\n| --- | --- |\n"
        for code in AdminCode.allCases { text += "| `\(code.rawValue)` | \(code.meaning) |\n" }
        return text
    }

    private static func section(of route: AdminRoute) -> String {
        let template = route.template
        let container = "/v1/containers/{container}/environments/{environment}/"
        if route.need == .cluster { return "The cluster" }
        if template.hasPrefix("/v1/users") { return "People" }
        if template.hasPrefix("/v1/exports") { return "Files of an export" }
        if template.hasPrefix("/v1/audit") { return "The audit trail" }
        if template.hasPrefix("/v1/sealing-keys") { return "Keys that seal tokens" }
        if template.hasPrefix("/v1/push") || template.hasPrefix(container + "push") {
            return "Pushes"
        }
        if route.need == .node { return template.hasPrefix(container) ? "Schemas" : "The node" }
        if template.hasPrefix(container + "tokens") { return "API tokens" }
        if template.hasPrefix(container + "keys") { return "Server keys" }
        if template.hasPrefix(container + "members") || template.hasPrefix(container + "access") {
            return "Roles"
        }
        return "Containers"
    }
}
