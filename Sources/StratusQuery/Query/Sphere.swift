package import StratusModel

/// A place as a point on the unit sphere, where the poles and the date line are like anywhere else.
///
/// Distances are compared as squared chords: monotone in the great-circle distance, and made of
/// nothing but multiplications, so that every replica and the index agree to the last bit.
package struct SpherePoint: Sendable, Hashable {
    package var x: Double
    package var y: Double
    package var z: Double

    init(x: Double, y: Double, z: Double) {
        self.x = x
        self.y = y
        self.z = z
    }

    /// Latitudes beyond the poles are the pole, longitudes go round.
    package init(_ location: Location) {
        let latitude = Sphere.radians(Sphere.clampedLatitude(location.latitude))
        let longitude = Sphere.radians(Sphere.wrappedLongitude(location.longitude))
        let ring = Sphere.cosine(latitude)
        self.x = ring * Sphere.cosine(longitude)
        self.y = ring * Sphere.sine(longitude)
        self.z = Sphere.sine(latitude)
    }

    /// 0 here, 4 at the other end of the world.
    package func squaredChord(to other: SpherePoint) -> Double {
        let dx = self.x - other.x
        let dy = self.y - other.y
        let dz = self.z - other.z
        return dx * dx + dy * dy + dz * dz
    }

    var antipode: SpherePoint { SpherePoint(x: -self.x, y: -self.y, z: -self.z) }
}

/// Trigonometry of our own: the pure modules import no C library, and index rows must be the same
/// on every platform.
package enum Sphere {
    /// Mean radius of the earth in metres (IUGG).
    package static let radius = 6_371_008.8
    static let pi = 3.141592653589793

    static func radians(_ degrees: Double) -> Double { degrees * (Self.pi / 180) }

    static func clampedLatitude(_ degrees: Double) -> Double { min(90, max(-90, degrees)) }

    /// In -180 ..< 180.
    static func wrappedLongitude(_ degrees: Double) -> Double {
        if degrees >= -180 && degrees < 180 { return degrees }
        var wrapped = degrees.truncatingRemainder(dividingBy: 360)
        if wrapped >= 180 { wrapped -= 360 }
        if wrapped < -180 { wrapped += 360 }
        return wrapped
    }

    /// The squared chord of a great-circle distance in metres: 4, everything, from half way round
    /// on.
    package static func squaredChord(ofDistance metres: Double) -> Double {
        let angle = metres / Self.radius
        if angle <= 0 { return 0 }
        // A little more than the largest chord, so that rounding excludes no antipode.
        if angle >= Self.pi { return 5 }
        let half = Self.sine(angle / 2)
        return 4 * half * half
    }

    /// For any angle of at most a few turns.
    static func sine(_ angle: Double) -> Double {
        let quarter = (angle / (Self.pi / 2)).rounded()
        let rest = Self.rest(of: angle, quarters: quarter)
        switch Int(quarter) & 3 {
        case 0: return Self.smallSine(rest)
        case 1: return Self.smallCosine(rest)
        case 2: return -Self.smallSine(rest)
        default: return -Self.smallCosine(rest)
        }
    }

    static func cosine(_ angle: Double) -> Double {
        let quarter = (angle / (Self.pi / 2)).rounded()
        let rest = Self.rest(of: angle, quarters: quarter)
        switch Int(quarter) & 3 {
        case 0: return Self.smallCosine(rest)
        case 1: return -Self.smallSine(rest)
        case 2: return -Self.smallCosine(rest)
        default: return Self.smallSine(rest)
        }
    }

    /// `angle` minus that many right angles, with pi/2 in two parts so that little is lost.
    private static func rest(of angle: Double, quarters: Double) -> Double {
        (angle - quarters * 1.5707963267948966) - quarters * 6.123233995736766e-17
    }

    /// Taylor's series to beyond double precision within 45 degrees.
    private static func smallSine(_ x: Double) -> Double {
        let s = x * x
        var sum = -1.0 / 1_307_674_368_000
        sum = 1.0 / 6_227_020_800 + s * sum
        sum = -1.0 / 39_916_800 + s * sum
        sum = 1.0 / 362_880 + s * sum
        sum = -1.0 / 5_040 + s * sum
        sum = 1.0 / 120 + s * sum
        sum = -1.0 / 6 + s * sum
        return x + x * s * sum
    }

    private static func smallCosine(_ x: Double) -> Double {
        let s = x * x
        var sum = -1.0 / 87_178_291_200
        sum = 1.0 / 479_001_600 + s * sum
        sum = -1.0 / 3_628_800 + s * sum
        sum = 1.0 / 40_320 + s * sum
        sum = -1.0 / 720 + s * sum
        sum = 1.0 / 24 + s * sum
        return 1 - s / 2 + s * s * sum
    }
}
