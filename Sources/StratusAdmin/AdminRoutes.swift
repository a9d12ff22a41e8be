import StratusHTTP

extension AdminRoute {
    /// Every route. Where a path fits two of them, the one with fewer names in braces comes first.
    package static let all: [AdminRoute] =
        NodePages.routes + SupportPages.routes + RemainsPages.routes + SchemaPages.routes
        + ContainerPages.routes + BrandPages.routes
        + KeyValuePages.routes + DocumentPages.routes + AppPasswordPages.routes + AssetPages.routes
        + AssetAdoptionPages.routes
        + TokenPages.routes
        + KeyPages.routes + RolePages.routes + UserPages.routes + PersonPages.routes
        + AuditPages.routes
        + SealingKeyPages.routes + EncryptionKeyPages.routes + PushPages.routes
        + ClusterPages.routes + ClusterChanges.routes
        + ExportPages.routes
        + AssetVerifyPages.routes

    /// The routes of one path: they share a template and differ in the method.
    static func fitting(_ path: String) -> [(route: AdminRoute, parameters: [String: String])] {
        guard let segments = URLPath(path)?.segments else { return [] }
        var template: String?
        return self.all.compactMap { route in
            guard template == nil || template == route.template,
                let parameters = route.parameters(in: segments)
            else { return nil }
            template = route.template
            return (route, parameters)
        }
    }

    /// Every template once, in the order of the table.
    static let templates: [String] = {
        var templates: [String] = []
        for route in Self.all where templates.last != route.template {
            if !templates.contains(route.template) { templates.append(route.template) }
        }
        return templates
    }()
}
