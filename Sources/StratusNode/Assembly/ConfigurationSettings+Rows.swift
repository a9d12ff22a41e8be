package import StratusAdmin
package import StratusConfiguration

extension ConfigurationSettings {
    /// Every key with its value as it would stand in the file, in the order of the table.
    package func rows() -> [ConfiguredValue] {
        ConfigurationKey.all.map { key in
            let entry = self.entry(key.path)
            return ConfiguredValue(
                key: key.path, value: entry?.value.source,
                origin: (entry?.origin ?? .default).description, reloads: key.reloads)
        }
    }
}
