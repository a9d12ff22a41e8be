import Foundation
import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// Distance and grid cells against plain trigonometry, above all at the poles and the date line.
@Suite struct QueryGeoTests {
    static func random(_ generator: inout SeededGenerator) -> Location {
        let special: [Double] = [-90, -89.999, -45, 0, 1e-9, 45, 89.999, 90]
        let meridians: [Double] = [-180, -179.9999, -90, 0, 90, 179.9999, 180]
        let latitude =
            Bool.random(using: &generator)
            ? special.randomElement(using: &generator)!
            : Double.random(in: -90...90, using: &generator)
        let longitude =
            Bool.random(using: &generator)
            ? meridians.randomElement(using: &generator)!
            : Double.random(in: -180...180, using: &generator)
        return Location(latitude: latitude, longitude: longitude)
    }

    static func metres(_ one: Location, _ two: Location) -> Double {
        let (a, b) = (one.latitude * .pi / 180, two.latitude * .pi / 180)
        let d = (two.longitude - one.longitude) * .pi / 180
        let y = hypot(cos(b) * sin(d), cos(a) * sin(b) - sin(a) * cos(b) * cos(d))
        let x = sin(a) * sin(b) + cos(a) * cos(b) * cos(d)
        return Sphere.radius * atan2(y, x)
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `squared chords order as great-circle distances`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let (one, two) = (Self.random(&generator), Self.random(&generator))
            let chord = SpherePoint(one).squaredChord(to: SpherePoint(two))
            let metres = Self.metres(one, two)
            let expected = Sphere.squaredChord(ofDistance: metres)
            #expect(abs(chord - min(4, expected)) < 1e-13, "\(one) \(two), seed \(seed)")
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `a cover holds every place within the distance`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let centre = Self.random(&generator)
            let radius = pow(10, Double.random(in: -1...7.4, using: &generator))
            let chord = Sphere.squaredChord(ofDistance: radius)
            let cover = GeoCell.cover(
                around: SpherePoint(centre), within: chord, countMax: 24)
            #expect(cover.count <= 24)
            for _ in 0..<40 {
                // Near the centre, so that many lie within.
                let spread = radius / 100_000
                let place =
                    Bool.random(using: &generator)
                    ? Self.random(&generator)
                    : Location(
                        latitude: min(
                            90,
                            max(
                                -90,
                                centre.latitude
                                    + Double.random(in: -spread...spread, using: &generator))),
                        longitude: centre.longitude + Double.random(
                            in: -180...180, using: &generator)
                            * min(1, spread))
                guard SpherePoint(place).squaredChord(to: SpherePoint(centre)) <= chord else {
                    continue
                }
                let code = GeoCell.code(of: place)
                #expect(
                    cover.contains { $0.contains(code) },
                    "\(centre) \(radius) \(place), seed \(seed)")
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `a cell's bounds hold for what lies in it`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<400 {
            let centre = SpherePoint(Self.random(&generator))
            let place = Self.random(&generator)
            let code = GeoCell.code(of: place)
            let chord = SpherePoint(place).squaredChord(to: centre)
            var cell = GeoCell.faces.first { $0.codes.contains(code) }!
            while cell.level < GeoCell.levelMax {
                let bounds = cell.bounds(from: centre)
                #expect(bounds.nearest <= chord, "\(cell), seed \(seed)")
                #expect(bounds.farthest >= chord, "\(cell), seed \(seed)")
                cell = cell.children.first { $0.codes.contains(code) }!
            }
        }
    }

    @Test func `a code's finest cell lies where the place is`() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<500 {
            let place = Self.random(&generator)
            let cell = GeoCell(code: GeoCell.code(of: place))
            #expect(cell.codes == GeoCell.code(of: place)...GeoCell.code(of: place))
            #expect(
                cell.middle.squaredChord(to: SpherePoint(place))
                    <= Sphere.squaredChord(ofDistance: 0.02), "\(place)")
        }
    }

    @Test func `a small circle needs few cells, also over a pole and the date line`() {
        for place in [
            Location(latitude: 90, longitude: 0), Location(latitude: -90, longitude: 77),
            Location(latitude: 0, longitude: 180), Location(latitude: 52, longitude: 13),
        ] {
            let cover = GeoCell.cover(
                around: SpherePoint(place), within: Sphere.squaredChord(ofDistance: 1_000),
                countMax: 24)
            let share = cover.map { Double($0.upperBound - $0.lowerBound) / 0x1p60 / 6 }.reduce(
                0, +)
            #expect(share < 1e-4, "\(place)")
        }
    }
}
