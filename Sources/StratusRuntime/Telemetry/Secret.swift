/// A value that must not be seen: a token, a key, a password.
///
/// It prints as `<secret>` wherever Swift can print it, and a ``LogValue`` cannot be made of it.
/// Code that needs the value calls ``reveal()`` at that place.
package struct Secret<Value: Sendable>: Sendable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    private let value: Value

    package init(_ value: Value) { self.value = value }

    package func reveal() -> Value { self.value }

    package var description: String { "<secret>" }
    package var debugDescription: String { "<secret>" }
    /// `dump` and the failure messages of tests look inside by reflection.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
