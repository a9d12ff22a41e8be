import Glibc
import StratusConfiguration

/// A data directory that is sealed although its key lies in it.
enum KeyBesideData {
    /// Nil: nothing is sealed, or the key lies elsewhere.
    static func warning(_ settings: ConfigurationSettings) -> String? {
        guard settings.bool("storage.atRest"), let directory = settings.text("dataDirectory"),
            let key = Self.key(settings, directory), Self.isBelow(key, directory)
        else { return nil }
        return "the key '\(key)' lies in the data directory '\(directory)', which it seals: "
            + "whoever copies this directory can read it: name a master key outside it, with "
            + "'keys.masterFiles' and 'keys.sealingMaster'"
    }

    /// The file of the key that seals. Key 0 comes from the cluster's secret, or from `token.key` on
    /// a node alone.
    private static func key(_ settings: ConfigurationSettings, _ directory: String) -> String? {
        let version = settings.integer("keys.sealingMaster")
        guard version != 0 else {
            return ClusterPeers.isClustered(settings)
                ? settings.text("cluster.secretFile") : directory + "/token.key"
        }
        let named = settings.texts("keys.masterFiles").first { $0.hasPrefix("\(version)=") }
        return named.map { String($0.drop { $0 != "=" }.dropFirst()) }
    }

    /// Whether a file is in a directory or below it, by where their links lead.
    static func isBelow(_ file: String, _ directory: String) -> Bool {
        let (file, directory) = (Self.parts(file), Self.parts(directory))
        return file.count > directory.count && file.starts(with: directory)
    }

    private static func parts(_ path: String) -> [Substring] {
        var rest: [Substring] = []
        var at = path
        // What is not there yet lies where the folders above it lead.
        while true {
            if let known = Self.real(at.isEmpty ? "." : at) {
                return known.split(separator: "/").map { Substring(String($0)) } + rest
            }
            guard let slash = at.lastIndex(of: "/") else {
                return (Self.real(".") ?? "").split(separator: "/") + [Substring(at)] + rest
            }
            let name = at[at.index(after: slash)...]
            if !name.isEmpty { rest.insert(name, at: 0) }
            at = slash == at.startIndex ? "/" : String(at[..<slash])
        }
    }

    private static func real(_ path: String) -> String? {
        guard let found = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }
}
