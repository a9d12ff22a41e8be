package import StratusModel

extension ContainerReference {
    /// What every program says of a container's name that is none.
    package static func refusal(of name: String) -> String {
        "'\(name)' cannot name a container: 1 to 255 ASCII characters without spaces are wanted"
    }
}
